#include "reports/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "evals/paired_difference.hpp"
#include "evals/student_t.hpp"
#include "reports/amounts.hpp"
#include "reports/evaluation.hpp"

namespace quantmap {
namespace {

using Row = const EvaluationRecord*;
constexpr std::int64_t kFewWindows = 20;  // product.md: fewer are flagged

double known(const Number& value, double otherwise) { return value.value_or(otherwise); }

// `51 % less`, of the reference's bytes.
std::string saving(const Number& bytes, const Number& reference) {
  if (!bytes || !reference || *reference <= 0) return "";
  const double less = 100 * (1 - *bytes / *reference);
  if (less >= 0.5) return fmt::format(", {:.0f} % less", less);
  return less <= -0.5 ? fmt::format(", {:.0f} % more", -less) : ", as before";
}

std::string cost(Row row) {
  return fmt::format("KL {} nats per token, at most {} with 95 % confidence",
                     with_error(row->kl_mean, row->kl_stderr), three_digits(kl_upper_bound(*row)));
}

std::string gains(Row row, const EvaluationRecord& reference) {
  return fmt::format("weights {} of {}{}; KV cache {} a token of {}{}", bytes_text(row->weight_bytes),
                     bytes_text(reference.weight_bytes), saving(row->weight_bytes, reference.weight_bytes),
                     cache_text(row->kv_bytes_per_token), cache_text(reference.kv_bytes_per_token),
                     saving(row->kv_bytes_per_token, reference.kv_bytes_per_token));
}

// Neighbours by KL that their paired comparison does not tell apart, in chains of neighbours.
std::string indistinguishable(const ReportEvaluation& evaluation, const std::vector<Row>& by_kl) {
  const std::string_view unsettled = verdict_name(Verdict::not_distinguishable);
  const auto same = [&](Row a, Row b) {
    return std::any_of(
        evaluation.comparisons.begin(), evaluation.comparisons.end(), [&](const ComparisonRecord& c) {
          return c.metric == "kl_mean" && c.verdict == unsettled &&
                 std::minmax(c.position, c.than) == std::minmax(a->scheme.position, b->scheme.position);
        });
  };
  std::string text;
  bool inside = false;
  for (std::size_t i = 0; i + 1 < by_kl.size(); ++i) {
    const bool joined = same(by_kl[i], by_kl[i + 1]);
    if (joined && !inside) text += fmt::format("{}{}", text.empty() ? "" : "; ", by_kl[i]->scheme.scheme);
    if (joined) text += fmt::format(" and {}", by_kl[i + 1]->scheme.scheme);
    inside = joined;
  }
  return text;
}

}  // namespace

Number kl_upper_bound(const EvaluationRecord& row) {
  if (!row.kl_mean || !row.kl_stderr || row.windows < 2 || row.kl_infinite > 0) return std::nullopt;
  return *row.kl_mean +
         student_t_quantile(kConfidence, static_cast<double>(row.windows - 1)) * *row.kl_stderr;
}

std::vector<std::string> answer(const ReportEvaluation& evaluation, double max_kl) {
  std::vector<std::string> sentences;
  std::vector<Row> by_kl;
  Row reference = nullptr, floor = nullptr;
  for (const EvaluationRecord& row : evaluation.rows) {
    if (row.scheme.position == 0)
      reference = &row;
    else if (row.scheme.scheme == kNoiseFloor)
      floor = &row;
    else if (row.kl_mean)
      by_kl.push_back(&row);
  }
  if (!reference || by_kl.empty())
    return {"No scheme was measured against the reference: nothing to choose."};
  std::stable_sort(by_kl.begin(), by_kl.end(), [](Row a, Row b) { return *a->kl_mean < *b->kl_mean; });
  std::vector<Row> by_size;
  for (Row row : by_kl)
    if (kl_upper_bound(*row)) by_size.push_back(row);
  if (by_size.empty())
    return {fmt::format(
        "Nothing can be recommended: {} leaves the KL of every scheme without an uncertainty. "
        "Measure at least {} windows.",
        reference->windows == 1 ? "one window" : fmt::format("a text of {} windows", reference->windows),
        kFewWindows)};
  const std::size_t judged = by_size.size();
  Row closest = *std::min_element(by_size.begin(), by_size.end(),
                                  [](Row a, Row b) { return *kl_upper_bound(*a) < *kl_upper_bound(*b); });
  std::erase_if(by_size, [&](Row row) { return *kl_upper_bound(*row) >= max_kl; });
  const std::string schemes = judged == 1 ? "the one scheme" : fmt::format("the {} schemes", judged);
  if (by_size.empty()) {
    sentences.push_back(
        fmt::format("Keep the reference: none of {} stays below {:.3g} nats of KL; {} comes "
                    "closest ({}).",
                    schemes, max_kl, closest->scheme.scheme, cost(closest)));
  } else {
    Row pick = *std::min_element(by_size.begin(), by_size.end(), [](Row a, Row b) {
      const auto order = [](Row row) {
        return std::tuple(known(row->weight_bytes, INFINITY), known(row->kv_bytes_per_token, INFINITY),
                          *row->kl_mean);
      };
      return order(a) < order(b);
    });
    sentences.push_back(fmt::format(
        "Take {}: of {} measured, the smallest that stays below {:.3g} nats of KL "
        "({}); {}{}.",
        pick->scheme.scheme, schemes, max_kl, cost(pick), gains(pick, *reference),
        pick->top1_agreement
            ? fmt::format("; the same most likely token at {} % of tokens", percent(pick->top1_agreement))
            : ""));
    if (closest != pick)
      sentences.push_back(fmt::format("Least harm: {} ({}); {}.", closest->scheme.scheme, cost(closest),
                                      gains(closest, *reference)));
  }
  if (const std::string same = indistinguishable(evaluation, by_kl); !same.empty())
    sentences.push_back(fmt::format("Not distinguishable by KL on this text (paired, Holm): {}.", same));
  if (floor && floor->kl_mean)
    for (Row row : by_kl)
      if (*row->kl_mean <= *floor->kl_mean)
        sentences.push_back(
            fmt::format("{} is within the noise floor (KL {} between two precisions of the "
                        "reference): its difference means nothing.",
                        row->scheme.scheme, three_digits(floor->kl_mean)));
  if (reference->windows < kFewWindows)
    sentences.push_back(fmt::format("Only {} windows: standard errors over fewer than {} are rough.",
                                    reference->windows, kFewWindows));
  return sentences;
}

}  // namespace quantmap
