#include "evals/scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/sum.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kFewWindows = 20;
constexpr double kBeyondQuantile = 50;
constexpr const char* kCutShort = "stored token scores are cut short";

// The fixed-size part of WindowScores, as it is stored.
struct PackedSums {
  double weight, nll, nll2, kl, kl2, kl_max, tv, delta_p, delta_p2;
  std::int64_t top1, margin_flips, kl_infinite, tokens;
};

Number finite(double value) { return std::isfinite(value) ? Number(value) : std::nullopt; }

Number times(const Number& a, const Number& b) { return a && b ? finite(*a * *b) : std::nullopt; }

// Cut off at the ends of what the metric can be.
Interval within(Interval interval, double least, double most) {
  if (interval.low) interval.low = std::max(least, *interval.low);
  if (interval.high) interval.high = std::min(most, *interval.high);
  return interval;
}

Number exp_of(const Number& value) { return value ? finite(std::exp(*value)) : std::nullopt; }

// Standard error of a mean of n independent values, as llama.cpp takes it.
Number iid_stderr(double sum, double sum2, double n) {
  if (n < 2) return std::nullopt;
  const double mean = sum / n, variance = sum2 / n - mean * mean;
  // Rounding may leave a little less than 0; NaN must pass.
  return finite(std::sqrt((variance < 0 ? 0 : variance) / (n - 1)));
}

void append(std::string& status, const std::string& reason) {
  if (status == "ok")
    status = reason;
  else
    status += "; " + reason;
}

}  // namespace

void WindowScores::reserve(std::int64_t tokens) {
  const auto count = static_cast<std::size_t>(tokens);
  nll.reserve(count);
  kl.reserve(count);
  tv.reserve(count);
  delta_p.reserve(count);
  top1.reserve(count);
}

void WindowScores::add(const TokenScore& token) {
  nll.push_back(static_cast<float>(token.nll));
  kl.push_back(static_cast<float>(token.kl));
  tv.push_back(static_cast<float>(token.tv));
  delta_p.push_back(static_cast<float>(token.delta_p));
  top1.push_back(token.top1 ? 1 : token.margin_flip ? 2 : 0);
  nll_sum += token.nll;
  nll2_sum += token.nll * token.nll;
  if (std::isinf(token.kl)) {
    ++kl_infinite;
  } else {
    kl_sum += token.kl;
    kl2_sum += token.kl * token.kl;
  }
  kl_max = std::max(kl_max, token.kl);
  tv_sum += token.tv;
  delta_p_sum += token.delta_p;
  delta_p2_sum += token.delta_p * token.delta_p;
  top1_sum += token.top1 ? 1 : 0;
  margin_flips += token.margin_flip ? 1 : 0;
}

std::string WindowScores::pack_tokens() const {
  std::string packed;
  put_bytes(packed, nll);
  put_bytes(packed, kl);
  put_bytes(packed, tv);
  put_bytes(packed, delta_p);
  put_bytes(packed, top1);
  return packed;
}

std::string WindowScores::pack_sums() const {
  const PackedSums sums{weight,      nll_sum,      nll2_sum, kl_sum,       kl2_sum,     kl_max,  tv_sum,
                        delta_p_sum, delta_p2_sum, top1_sum, margin_flips, kl_infinite, tokens()};
  return {reinterpret_cast<const char*>(&sums), sizeof sums};
}

WindowScores WindowScores::unpack(std::int64_t scheme, std::int64_t window, std::string_view tokens,
                                  std::string_view packed) {
  PackedSums sums{};
  if (packed.size() != sizeof sums) fail("database", "", "stored window sums have another size");
  std::memcpy(&sums, packed.data(), sizeof sums);
  WindowScores scores;
  scores.scheme = scheme;
  scores.window = window;
  scores.weight = sums.weight;
  scores.nll_sum = sums.nll;
  scores.nll2_sum = sums.nll2;
  scores.kl_sum = sums.kl;
  scores.kl2_sum = sums.kl2;
  scores.kl_max = sums.kl_max;
  scores.tv_sum = sums.tv;
  scores.delta_p_sum = sums.delta_p;
  scores.delta_p2_sum = sums.delta_p2;
  scores.top1_sum = sums.top1;
  scores.margin_flips = sums.margin_flips;
  scores.kl_infinite = sums.kl_infinite;
  std::size_t at = 0;
  const auto count = static_cast<std::size_t>(sums.tokens);
  take_bytes(tokens, at, count, scores.nll, kCutShort);
  take_bytes(tokens, at, count, scores.kl, kCutShort);
  take_bytes(tokens, at, count, scores.tv, kCutShort);
  take_bytes(tokens, at, count, scores.delta_p, kCutShort);
  take_bytes(tokens, at, count, scores.top1, kCutShort);
  return scores;
}

Number clustered_stderr(std::span<const Cluster> windows) {
  const auto clusters = static_cast<double>(windows.size());
  if (windows.size() < 2) return std::nullopt;
  Sum sum, count;
  for (const Cluster& window : windows) {
    sum.add(window.sum);
    count.add(window.count);
  }
  if (count.value() <= 0) return std::nullopt;
  const double mean = sum.value() / count.value();
  Sum squares;
  for (const Cluster& window : windows) {
    const double deviation = window.sum - window.count * mean;
    squares.add(deviation * deviation);
  }
  return finite(std::sqrt(clusters / (clusters - 1) * squares.value()) / count.value());
}

Number exact_quantile(std::span<const float> sorted, double f) {
  const auto n = static_cast<double>(sorted.size());
  // A hair of slack: 50 values beyond the 99th percentile of 5,000 is 50, not 49.999….
  if (n * std::min(f, 1 - f) < kBeyondQuantile - 1e-6) return std::nullopt;
  const double at = f * (n - 1);
  const auto below = static_cast<std::size_t>(at);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  const double part = at - std::floor(at);
  return finite(part == 0 || low == high ? low : low + (high - low) * part);
}

ScoreSummary summarize(std::span<const WindowScores> scheme, std::span<const WindowScores> reference) {
  if (scheme.size() != reference.size())
    fail("evaluation", "",
         fmt::format("{} windows of a scheme, {} of the reference", scheme.size(), reference.size()));
  ScoreSummary s;
  s.windows = static_cast<std::int64_t>(scheme.size());
  Sum nll2, kl, kl2, tv, delta_p, delta_p2, weighted_nll, weighted_reference, weight, flat_nll;
  std::int64_t top1 = 0;
  double kl_max = 0;
  std::vector<Cluster> nll_windows, kl_windows, top1_windows, ratio_windows;
  std::vector<float> kl_values;
  for (std::size_t w = 0; w < scheme.size(); ++w) {
    const WindowScores& mine = scheme[w];
    const WindowScores& theirs = reference[w];
    if (mine.tokens() != theirs.tokens() || mine.window != theirs.window)
      fail("evaluation", "", fmt::format("window {} has other tokens than the reference's", mine.window));
    const auto n = static_cast<double>(mine.tokens());
    if (n == 0) continue;
    s.tokens += mine.tokens();
    flat_nll.add(mine.nll_sum);
    nll2.add(mine.nll2_sum);
    weight.add(mine.weight);
    weighted_nll.add(mine.nll_sum * (mine.weight / n));
    weighted_reference.add(theirs.nll_sum * (mine.weight / n));
    kl.add(mine.kl_sum);
    kl2.add(mine.kl2_sum);
    tv.add(mine.tv_sum);
    delta_p.add(mine.delta_p_sum);
    delta_p2.add(mine.delta_p2_sum);
    top1 += mine.top1_sum;
    s.margin_flips += mine.margin_flips;
    s.kl_infinite += mine.kl_infinite;
    kl_max = std::max(kl_max, mine.kl_max);
    nll_windows.push_back({mine.nll_sum * (mine.weight / n), mine.weight});
    ratio_windows.push_back({(mine.nll_sum - theirs.nll_sum) * (mine.weight / n), mine.weight});
    kl_windows.push_back({mine.kl_sum, n});
    top1_windows.push_back({static_cast<double>(mine.top1_sum), n});
    kl_values.insert(kl_values.end(), mine.kl.begin(), mine.kl.end());
  }
  if (s.tokens == 0 || !(weight.value() > 0)) {
    s.status = "no token scored";
    return s;
  }
  const auto n = static_cast<double>(s.tokens);
  s.nll = finite(weighted_nll.value() / weight.value());
  if (!s.nll) append(s.status, "NLL is not a number: the scheme's logits overflow or are NaN");
  s.ppl = s.nll ? finite(std::exp(*s.nll)) : std::nullopt;
  if (s.nll && !s.ppl) append(s.status, "perplexity overflows");
  s.nll_stderr = clustered_stderr(nll_windows);
  s.ppl_stderr = times(s.ppl, s.nll_stderr);
  if (s.nll) {
    s.ln_ppl_ratio = finite((weighted_nll.value() - weighted_reference.value()) / weight.value());
    s.ln_ppl_ratio_stderr = clustered_stderr(ratio_windows);
  }
  s.nll_stderr_iid = iid_stderr(flat_nll.value(), nll2.value(), n);
  s.ppl_stderr_iid = times(s.ppl, s.nll_stderr_iid);

  const bool kl_numbers = std::isfinite(kl.value());  // of the tokens where it is not infinite
  if (s.kl_infinite > 0)
    append(s.status, fmt::format("KL is infinite on {} of {} tokens", s.kl_infinite, s.tokens));
  if (!kl_numbers) append(s.status, "KL is not a number");
  if (kl_numbers && s.kl_infinite == 0) {
    s.kl_mean = kl.value() / n;
    s.kl_stderr = clustered_stderr(kl_windows);
    s.kl_stderr_iid = iid_stderr(kl.value(), kl2.value(), n);
    s.kl_max = kl_max;
  }
  if (kl_numbers) {  // NaN has no place in an order
    std::sort(kl_values.begin(), kl_values.end());
    s.kl_p50 = exact_quantile(kl_values, 0.5);
    s.kl_p90 = exact_quantile(kl_values, 0.9);
    s.kl_p99 = exact_quantile(kl_values, 0.99);
    s.kl_p999 = exact_quantile(kl_values, 0.999);
  }
  s.tv_mean = finite(tv.value() / n);
  if (s.nll && kl_numbers) {  // the largest of logits that are not numbers is none
    s.top1_agreement = static_cast<double>(top1) / n;
    s.top1_stderr = clustered_stderr(top1_windows);
  }
  s.delta_p_mean = finite(delta_p.value() / n);
  s.delta_p_rms = finite(std::sqrt(delta_p2.value() / n));
  const double degrees = static_cast<double>(nll_windows.size()) - 1;
  const Interval nll_interval = t_interval(s.nll, s.nll_stderr, degrees);
  s.ppl_interval = {exp_of(nll_interval.low), exp_of(nll_interval.high)};
  s.ln_ppl_ratio_interval = t_interval(s.ln_ppl_ratio, s.ln_ppl_ratio_stderr, degrees);
  s.kl_interval = within(t_interval(s.kl_mean, s.kl_stderr, degrees), 0, INFINITY);
  s.top1_interval = within(t_interval(s.top1_agreement, s.top1_stderr, degrees), 0, 1);
  if (s.windows == 1)
    s.notes.emplace_back("one window: no standard error over windows");
  else if (s.windows < kFewWindows)
    s.notes.push_back(
        fmt::format("{} windows: standard errors over windows are rough below {}", s.windows, kFewWindows));
  return s;
}

}  // namespace quantmap
