#include "reports/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

#include "evals/student_t.hpp"
#include "reports/amounts.hpp"
#include "reports/comparisons.hpp"
#include "reports/evaluation.hpp"

namespace quantmap {
namespace {

using Row = const EvaluationRecord*;
constexpr std::int64_t kFewWindows = 20;  // product.md: fewer are flagged

double known(const Number& value, double otherwise) { return value.value_or(otherwise); }

std::string cost(Row row) {
  return fmt::format("{}, at most {} with 95 % confidence", with_error(row->kl_mean, row->kl_stderr),
                     three_digits(kl_upper_bound(*row)));
}

// `51 % fewer bytes of weights`; empty where it rounds to none, or is unknown.
std::string change(const Number& bytes, const Number& reference, std::string_view what) {
  if (!bytes || !reference || *reference <= 0) return "";
  const double less = 100 * (1 - *bytes / *reference);
  if (std::abs(less) < 0.5) return "";
  return fmt::format("{:.0f} % {} bytes of {}", std::abs(less), less > 0 ? "fewer" : "more", what);
}

std::string savings(Row row, const EvaluationRecord& reference) {
  const std::string weights = change(row->weight_bytes, reference.weight_bytes, "weights");
  const std::string cache = change(row->kv_bytes_per_token, reference.kv_bytes_per_token, "KV cache");
  if (weights.empty() && cache.empty()) return "no fewer bytes";
  return weights + (weights.empty() || cache.empty() ? "" : " and ") + cache;
}

std::string amounts(Row row, const EvaluationRecord& reference) {
  std::string text =
      fmt::format("Weights: {} (reference: {}). KV cache: {} a token (reference: {}).",
                  bytes_text(row->weight_bytes), bytes_text(reference.weight_bytes),
                  cache_text(row->kv_bytes_per_token), cache_text(reference.kv_bytes_per_token));
  if (row->top1_agreement)
    text += fmt::format(" The most likely next token is the reference's at {} % of tokens.",
                        percent(row->top1_agreement));
  return text;
}

}  // namespace

Number kl_upper_bound(const EvaluationRecord& row) {
  if (!row.kl_mean || !row.kl_stderr || row.windows < 2 || row.kl_infinite > 0) return std::nullopt;
  return *row.kl_mean +
         student_t_quantile(kConfidence, static_cast<double>(row.windows - 1)) * *row.kl_stderr;
}

Answer answer(const ReportEvaluation& evaluation, double max_kl) {
  Answer answer;
  std::vector<std::string>& sentences = answer.sentences;
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
  if (!reference || by_kl.empty()) {
    sentences = {"No scheme was measured against the reference: nothing to choose."};
    return answer;
  }
  std::stable_sort(by_kl.begin(), by_kl.end(), [](Row a, Row b) { return *a->kl_mean < *b->kl_mean; });
  std::vector<Row> judged;
  for (Row row : by_kl)
    if (kl_upper_bound(*row)) judged.push_back(row);
  if (judged.empty()) {
    sentences = {fmt::format(
        "Nothing can be recommended: {} leaves the KL of every scheme without an uncertainty. "
        "Measure at least {} windows.",
        reference->windows == 1 ? "one window" : fmt::format("a text of {} windows", reference->windows),
        kFewWindows)};
    return answer;
  }
  Row closest = *std::min_element(judged.begin(), judged.end(),
                                  [](Row a, Row b) { return *kl_upper_bound(*a) < *kl_upper_bound(*b); });
  std::vector<Row> bearable = judged;
  std::erase_if(bearable, [&](Row row) { return *kl_upper_bound(*row) >= max_kl; });
  const std::string schemes =
      judged.size() == 1 ? "the one scheme" : fmt::format("the {} schemes", judged.size());
  if (bearable.empty()) {
    sentences.push_back(fmt::format(
        "Keep the reference: none of {} stays below {:.3g} nats of KL per token; {} comes closest "
        "({}).",
        schemes, max_kl, closest->scheme.scheme, cost(closest)));
  } else {
    const auto size = [](Row row) {
      return std::tuple(known(row->weight_bytes, INFINITY), known(row->kv_bytes_per_token, INFINITY),
                        *row->kl_mean);
    };
    Row pick =
        *std::min_element(bearable.begin(), bearable.end(), [&](Row a, Row b) { return size(a) < size(b); });
    answer.pick = pick->scheme.position;
    sentences.push_back(
        fmt::format("Take {}: {}. It is the smallest of {} whose KL stays below {:.3g} nats per token "
                    "({}).",
                    pick->scheme.scheme, savings(pick, *reference), schemes, max_kl, cost(pick)));
    sentences.push_back(amounts(pick, *reference));
    if (closest != pick)
      sentences.push_back(fmt::format("Least harm: {}, KL {}; {}.", closest->scheme.scheme, cost(closest),
                                      savings(closest, *reference)));
  }
  for (std::string note : comparison_notes(evaluation.rows, evaluation.comparisons)) {
    note[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(note[0])));
    sentences.push_back(note + ".");
  }
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
  return answer;
}

}  // namespace quantmap
