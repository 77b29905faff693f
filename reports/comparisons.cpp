#include "reports/comparisons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evals/paired_difference.hpp"
#include "reports/evaluation.hpp"
#include "reports/run_document.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

bool undecided(const ComparisonRecord& c) { return c.verdict == verdict_name(Verdict::not_distinguishable); }

const ComparisonRecord* find(std::span<const ComparisonRecord> comparisons, std::string_view metric,
                             std::int64_t a, std::int64_t b) {
  for (const ComparisonRecord& c : comparisons)
    if (c.metric == metric && c.position == std::max(a, b) && c.than == std::min(a, b)) return &c;
  return nullptr;
}

std::string more(const ComparisonRecord& c) {
  constexpr double kWorthSaying = 1e6;
  if (!c.more_windows || *c.more_windows <= 0 || *c.more_windows > kWorthSaying) return "";
  return fmt::format("about {:.0f} more windows would settle it", std::ceil(*c.more_windows));
}

}  // namespace

std::string verdict_text(const ComparisonRecord& c) {
  const std::string settle = undecided(c) ? more(c) : "";
  return settle.empty() ? c.verdict : c.verdict + " (" + settle + ")";
}

std::vector<std::string> comparison_notes(std::span<const EvaluationRecord> evaluations,
                                          std::span<const ComparisonRecord> comparisons) {
  std::vector<const EvaluationRecord*> by_kl;
  std::vector<std::string> like_reference, notes;
  for (const EvaluationRecord& e : evaluations) {
    if (e.scheme.position == 0 || e.scheme.scheme == kNoiseFloor) continue;
    if (e.kl_mean) by_kl.push_back(&e);
    const ComparisonRecord* c = find(comparisons, "ln_ppl_ratio", e.scheme.position, 0);
    if (c && undecided(*c)) like_reference.push_back(e.scheme.scheme);
  }
  std::stable_sort(by_kl.begin(), by_kl.end(),
                   [](const auto* a, const auto* b) { return *a->kl_mean < *b->kl_mean; });
  for (std::size_t i = 1; i < by_kl.size(); ++i) {
    const SchemeRecord &a = by_kl[i - 1]->scheme, &b = by_kl[i]->scheme;
    const ComparisonRecord* c = find(comparisons, "kl_mean", a.position, b.position);
    if (!c || !undecided(*c)) continue;
    const std::string settle = more(*c);
    notes.push_back(fmt::format("not distinguishable in KL: {} and {} (p {:.2g} after Holm{}{})", a.scheme,
                                b.scheme, c->p_holm.value_or(1), settle.empty() ? "" : "; ", settle));
  }
  if (!like_reference.empty())
    notes.push_back(fmt::format("perplexity not distinguishable from the reference's: {}",
                                fmt::join(like_reference, ", ")));
  return notes;
}

Json comparison_rows(std::span<const ComparisonRecord> comparisons) {
  Json rows = Json::array();
  for (const ComparisonRecord& c : comparisons)
    rows.push_back({{"scheme", c.scheme},
                    {"than", c.than_scheme},
                    {"metric", c.metric},
                    {"difference", json_of(c.difference)},
                    {"stderr", json_of(c.stderr_of_difference)},
                    {"low", json_of(c.low)},
                    {"high", json_of(c.high)},
                    {"bootstrap_low", json_of(c.bootstrap_low)},
                    {"bootstrap_high", json_of(c.bootstrap_high)},
                    {"p", json_of(c.p)},
                    {"p_holm", json_of(c.p_holm)},
                    {"windows", c.windows},
                    {"verdict", c.verdict},
                    {"more_windows", json_of(c.more_windows)}});
  return rows;
}

}  // namespace quantmap
