// The acceptance gate, `eval --require "kl<0.01 recovery>0.99"`: each condition is tested against its margin
// by a one-sided interval (Schuirmann 1987, the two one-sided tests of equivalence, one side of which a
// margin asks for):
//   pass       the one-sided 95 % bound on the far side lies within the margin: worse is ruled out
//   fail       the one-sided 95 % bound on the near side lies beyond it: better is ruled out
//   undecided  the margin lies between the two bounds
// Passing all of several conditions needs no correction (Berger 1982, intersection-union tests).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evals/scores.hpp"
#include "evals/student_t.hpp"

namespace quantmap {

enum class Relation : std::uint8_t { less, less_equal, greater, greater_equal };

struct Condition {
  std::string text;    // as given, `kl<0.01`
  std::string metric;  // the column's name, `kl_mean`
  Relation relation = Relation::less;
  double margin = 0;
};
// Conditions apart by white space or commas; METRIC RELATION NUMBER each, spaces around the relation allowed;
// relations < <= > >=. Error (usage) naming the part that is none, a metric that is unknown and those that
// are known.
std::vector<Condition> parse_conditions(std::string_view text);

// A metric of one scheme and what is known of it. low, high: one-sided 95 % bounds; both are the value itself
// where it is exact (sizes), or about the measured tokens alone (counts, the largest KL).
struct Measured {
  double value = 0;
  Number low, high;       // empty: nothing bounds it on that side
  std::string undefined;  // not empty: there is no value, and why
  bool broken = false;    // because the scheme's logits are not numbers
};
// From the scheme's windows and the reference's, by metric:
//   nll, ln_ppl_ratio, kl_mean, tv_mean, top1_agreement, delta_p_mean: Student's t over windows
//   ppl = exp(nll), recovery = exp(-ln_ppl_ratio) = PPL of the reference / PPL, delta_p_rms: the same,
//   carried
//     through the function
//   kl_p50 … kl_p999: the order statistics at the bounds of their share of tokens, itself clustered by window
//     (Woodruff 1952, "Confidence intervals for medians and other position measures")
//   kl_max, kl_infinite, margin_flips: exact
//   other columns (bytes, bits, seconds): `column(name)`, exact; undefined where that has none.
Measured measured(std::string_view metric, std::span<const WindowScores> scheme,
                  std::span<const WindowScores> reference,
                  const std::function<Number(std::string_view)>& column);

enum class GateVerdict : std::uint8_t { pass, fail, undecided };
std::string_view gate_verdict_name(GateVerdict verdict);
// A metric without a value is undecided, but where the scheme's numbers are the reason (a KL that is
// infinite, logits that are not numbers): that fails.
GateVerdict judge(const Condition& condition, const Measured& m);
// fail where any fails, else undecided where any is, else pass.
GateVerdict worst(GateVerdict a, GateVerdict b);

}  // namespace quantmap
