#include "evals/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/sum.hpp"

namespace quantmap {
namespace {

constexpr const char* kRequire = "--require";
// Two one-sided bounds of 95 % are the ends of an interval of 90 %.
constexpr double kBothSides = 2 * kConfidence - 1;

struct GateMetric {
  std::string_view name, alias;
};
constexpr std::array<GateMetric, 22> kMetrics{{
    {"ppl", ""},
    {"nll", ""},
    {"ln_ppl_ratio", ""},
    {"recovery", ""},
    {"kl_mean", "kl"},
    {"kl_p50", ""},
    {"kl_p90", ""},
    {"kl_p99", ""},
    {"kl_p999", ""},
    {"kl_max", ""},
    {"kl_infinite", ""},
    {"tv_mean", "tv"},
    {"top1_agreement", "top1"},
    {"margin_flips", ""},
    {"delta_p_mean", ""},
    {"delta_p_rms", ""},
    {"tokens_scored", ""},
    {"bpw_quantized", ""},
    {"bpw_model", ""},
    {"weight_bytes", ""},
    {"kv_bytes_per_token", ""},
    {"seconds", ""},
}};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ','; }

std::string_view metric_name(std::string_view given) {
  for (const GateMetric& metric : kMetrics)
    if (given == metric.name || (!given.empty() && given == metric.alias)) return metric.name;
  std::string known;
  for (const GateMetric& metric : kMetrics) {
    known.append(known.empty() ? "" : ", ").append(metric.name);
    if (!metric.alias.empty()) known.append(" or ").append(metric.alias);
  }
  fail_usage(kRequire, fmt::format("unknown metric {} (the metrics are {})", quoted(given), known));
}

[[noreturn]] void fail_condition(std::string_view part) {
  fail_usage(kRequire,
             fmt::format("no condition (expected METRIC<NUMBER or METRIC>NUMBER, as kl<0.01, found {})",
                         quoted(part)));
}

// What a metric is the mean of, in one window.
using Part = std::function<Cluster(const WindowScores& mine, const WindowScores& theirs)>;

Measured undefined(std::string reason) {
  Measured m;
  m.value = std::numeric_limits<double>::quiet_NaN();
  m.undefined = std::move(reason);
  return m;
}

Measured not_a_number() {
  Measured m = undefined("not a number: the scheme's logits overflow or are NaN");
  m.broken = true;
  return m;
}

Measured bounded(double value, const Number& low, const Number& high) {
  Measured m;
  m.value = value;
  m.low = low;
  m.high = high;
  return m;
}

Measured exact(double value) { return bounded(value, value, value); }

struct Mean {
  Number value, stderr_of_value;
  double degrees = 0;
};
Mean mean_of(const std::vector<Cluster>& windows) {
  Sum sum, count;
  for (const Cluster& window : windows) {
    sum.add(window.sum);
    count.add(window.count);
  }
  Mean mean;
  mean.degrees = static_cast<double>(windows.size()) - 1;
  const double value = sum.value() / count.value();
  if (count.value() > 0 && std::isfinite(value)) {
    mean.value = value;
    mean.stderr_of_value = clustered_stderr(windows);
  }
  return mean;
}

std::vector<Cluster> parts(std::span<const WindowScores> scheme, std::span<const WindowScores> reference,
                           const Part& part) {
  std::vector<Cluster> windows;
  for (std::size_t w = 0; w < scheme.size(); ++w)
    if (scheme[w].tokens() > 0) windows.push_back(part(scheme[w], reference[w]));
  return windows;
}

Measured of_mean(const Mean& mean) {
  if (!mean.value) return not_a_number();
  const Interval bounds = t_interval(mean.value, mean.stderr_of_value, mean.degrees, kBothSides);
  return bounded(*mean.value, bounds.low, bounds.high);
}

Number through(const Number& bound, const std::function<double(double)>& function) {
  return bound ? Number(function(*bound)) : std::nullopt;
}

// A rising function of a mean.
Measured rising(Measured m, const std::function<double(double)>& function) {
  if (!m.undefined.empty()) return m;
  return bounded(function(m.value), through(m.low, function), through(m.high, function));
}

double quantile(const std::vector<float>& sorted, double f) {
  const double at = f * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  const double part = at - std::floor(at);
  return part == 0 || low == high ? low : low + (high - low) * part;
}

Measured kl_quantile(std::span<const WindowScores> scheme, double f) {
  std::vector<float> values;
  for (const WindowScores& window : scheme) values.insert(values.end(), window.kl.begin(), window.kl.end());
  if (std::any_of(values.begin(), values.end(), [](float kl) { return std::isnan(kl); }))
    return not_a_number();
  std::sort(values.begin(), values.end());
  const Number value = exact_quantile(values, f);
  if (!value) return undefined("too few tokens lie beyond it");
  const auto at = static_cast<float>(*value);
  const Mean share = mean_of(parts(scheme, scheme, [at](const WindowScores& mine, const WindowScores&) {
    const auto below = std::count_if(mine.kl.begin(), mine.kl.end(), [at](float kl) { return kl <= at; });
    return Cluster{static_cast<double>(below), static_cast<double>(mine.tokens())};
  }));
  const Interval bounds = t_interval(f, share.stderr_of_value, share.degrees, kBothSides);
  Measured m;
  m.value = *value;
  if (bounds.low && *bounds.low >= 0) m.low = quantile(values, *bounds.low);
  if (bounds.high && *bounds.high <= 1) m.high = quantile(values, *bounds.high);
  return m;
}

Cluster nll_part(const WindowScores& mine, double sum) {
  return {sum * (mine.weight / static_cast<double>(mine.tokens())), mine.weight};
}

Cluster per_token(const WindowScores& mine, double sum) { return {sum, static_cast<double>(mine.tokens())}; }

}  // namespace

std::vector<Condition> parse_conditions(std::string_view text) {
  std::vector<Condition> conditions;
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && is_space(text[at])) ++at;
  };
  const auto take = [&](const auto& wanted) {
    const std::size_t begin = at;
    while (at < text.size() && wanted(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  const auto is_relation = [](char c) { return c == '<' || c == '>' || c == '='; };
  for (skip(); at < text.size(); skip()) {
    const std::string_view rest = text.substr(at);
    Condition condition;
    const std::string_view name = take([&](char c) { return !is_space(c) && !is_relation(c); });
    skip();
    const std::string_view relation = take(is_relation);
    skip();
    const std::string_view number = take([&](char c) { return !is_space(c) && !is_relation(c); });
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), condition.margin);
    if (name.empty() || error != std::errc() || end != number.data() + number.size() ||
        !std::isfinite(condition.margin))
      fail_condition(rest);
    if (relation == "<")
      condition.relation = Relation::less;
    else if (relation == "<=")
      condition.relation = Relation::less_equal;
    else if (relation == ">")
      condition.relation = Relation::greater;
    else if (relation == ">=")
      condition.relation = Relation::greater_equal;
    else
      fail_condition(rest);
    condition.metric = metric_name(name);
    condition.text = fmt::format("{}{}{}", name, relation, number);
    conditions.push_back(std::move(condition));
  }
  if (conditions.empty()) fail_condition(text);
  return conditions;
}

Measured measured(std::string_view metric, std::span<const WindowScores> scheme,
                  std::span<const WindowScores> reference,
                  const std::function<Number(std::string_view)>& column) {
  if (scheme.size() != reference.size())
    fail("gate", "",
         fmt::format("{} windows of a scheme, {} of the reference", scheme.size(), reference.size()));
  const auto mean = [&](const Part& part) { return of_mean(mean_of(parts(scheme, reference, part))); };
  using W = WindowScores;
  const auto nll = [&] { return mean([](const W& m, const W&) { return nll_part(m, m.nll_sum); }); };
  const auto ratio = [&] {
    return mean([](const W& m, const W& r) { return nll_part(m, m.nll_sum - r.nll_sum); });
  };
  std::int64_t infinite = 0, tokens = 0;
  for (const W& window : scheme) {
    infinite += window.kl_infinite;
    tokens += window.tokens();
  }
  if (tokens == 0) return undefined("no token scored");
  if (metric == "nll") return nll();
  if (metric == "ppl") return rising(nll(), [](double x) { return std::exp(x); });
  if (metric == "ln_ppl_ratio") return ratio();
  if (metric == "recovery") {
    Measured m = rising(ratio(), [](double x) { return std::exp(-x); });
    std::swap(m.low, m.high);
    return m;
  }
  if (metric == "kl_mean") {
    if (infinite > 0) return exact(std::numeric_limits<double>::infinity());
    return mean([](const W& m, const W&) { return per_token(m, m.kl_sum); });
  }
  if (metric == "kl_p50") return kl_quantile(scheme, 0.5);
  if (metric == "kl_p90") return kl_quantile(scheme, 0.9);
  if (metric == "kl_p99") return kl_quantile(scheme, 0.99);
  if (metric == "kl_p999") return kl_quantile(scheme, 0.999);
  if (metric == "kl_max") {
    double largest = 0;
    for (const W& window : scheme) {
      if (std::isnan(window.kl_sum)) return not_a_number();
      largest = std::max(largest, window.kl_max);
    }
    return exact(largest);
  }
  if (metric == "kl_infinite") return exact(static_cast<double>(infinite));
  if (metric == "tv_mean") return mean([](const W& m, const W&) { return per_token(m, m.tv_sum); });
  if (metric == "top1_agreement" || metric == "margin_flips") {
    // The largest of logits that are not numbers is none.
    const Measured logits = mean([](const W& m, const W&) { return per_token(m, m.tv_sum); });
    if (!logits.undefined.empty()) return logits;
    if (metric == "top1_agreement")
      return mean([](const W& m, const W&) { return per_token(m, static_cast<double>(m.top1_sum)); });
    std::int64_t flips = 0;
    for (const W& window : scheme) flips += window.margin_flips;
    return exact(static_cast<double>(flips));
  }
  if (metric == "delta_p_mean") return mean([](const W& m, const W&) { return per_token(m, m.delta_p_sum); });
  if (metric == "delta_p_rms") {
    const auto root = [](double x) { return std::sqrt(std::max(0.0, x)); };
    return rising(mean([](const W& m, const W&) { return per_token(m, m.delta_p2_sum); }), root);
  }
  const Number value = column(metric);
  if (!value) return undefined(fmt::format("{} has no value", metric));
  return exact(*value);
}

std::string_view gate_verdict_name(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::pass:
      return "pass";
    case GateVerdict::fail:
      return "fail";
    case GateVerdict::undecided:
      return "undecided";
  }
  fail("gate", "", "unknown verdict");
}

GateVerdict judge(const Condition& condition, const Measured& m) {
  if (!m.undefined.empty()) return m.broken ? GateVerdict::fail : GateVerdict::undecided;
  const auto holds = [&](double value) {
    switch (condition.relation) {
      case Relation::less:
        return value < condition.margin;
      case Relation::less_equal:
        return value <= condition.margin;
      case Relation::greater:
        return value > condition.margin;
      case Relation::greater_equal:
        return value >= condition.margin;
    }
    return false;
  };
  const bool upper = condition.relation == Relation::less || condition.relation == Relation::less_equal;
  const Number& worst_case = upper ? m.high : m.low;
  const Number& best_case = upper ? m.low : m.high;
  if (worst_case && holds(*worst_case)) return GateVerdict::pass;
  if (best_case && !holds(*best_case)) return GateVerdict::fail;
  return GateVerdict::undecided;
}

GateVerdict worst(GateVerdict a, GateVerdict b) {
  if (a == GateVerdict::fail || b == GateVerdict::fail) return GateVerdict::fail;
  return a == GateVerdict::undecided ? a : b;
}

}  // namespace quantmap
