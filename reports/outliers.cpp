#include "reports/outliers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/run_document.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPlacesShown = 12;  // more are counted, not printed

// `down_proj input`, `key`, `layer output`: a site without its layer.
std::string module_of(const std::string& site, std::int64_t layer) {
  const std::string prefix = fmt::format("model.layers.{}", layer);
  if (!site.starts_with(prefix)) return site;
  if (site[prefix.size()] == ' ') return "layer" + site.substr(prefix.size());
  const std::string rest = site.substr(prefix.size() + 1);
  const std::size_t space = rest.find(' ');
  const std::string module = rest.substr(0, space);
  if (module == "self_attn") return rest.substr(space + 1);
  return module.substr(module.rfind('.') + 1) + rest.substr(space);
}

Value number(const Number& value) { return value ? Value(*value) : Value(); }
Value percent(const Number& share) { return share ? Value(100 * *share) : Value(); }

Json row_of(const OutlierRecord& o) {
  return {{"layer", o.layer},
          {"site", o.site},
          {"window", o.window},
          {"token", o.token},
          {"channel", o.channel},
          {"value", json_of(o.value)},
          {"median_abs", json_of(o.median_abs)},
          {"ratio", json_of(o.ratio)},
          {"massive", o.massive},
          {"status", o.status}};
}

Json row_of(const SiteStatisticsRecord& s) {
  return {{"layer", s.layer},
          {"site", s.site},
          {"count", s.count},
          {"nonfinite", s.nonfinite},
          {"mean", json_of(s.mean)},
          {"rms", json_of(s.rms)},
          {"amax", json_of(s.amax)},
          {"crest", json_of(s.crest)},
          {"kurtosis", json_of(s.kurtosis)},
          {"rows", s.rows},
          {"massive_values", s.massive_values},
          {"massive_rows", s.massive_rows},
          {"windows", s.windows},
          {"massive_windows", s.massive_windows},
          {"status", s.status}};
}

Json row_of(const SchemeRecord& scheme, const OutlierShareRecord& o) {
  return {{"layer", o.layer},
          {"site", o.site},
          {"scheme", scheme.scheme},
          {"error2", json_of(o.error2)},
          {"rel_error", json_of(o.rel_error)},
          {"massive_values", json_of(o.massive_values)},
          {"massive_rows", json_of(o.massive_rows)},
          {"first_tokens", json_of(o.first_tokens)},
          {"rest_error2", json_of(o.rest_error2)},
          {"rest_rel_error", json_of(o.rest_rel_error)},
          {"rest_massive_values", json_of(o.rest_massive_values)},
          {"rest_massive_rows", json_of(o.rest_massive_rows)},
          {"nonfinite", o.nonfinite},
          {"status", o.status}};
}

const SchemeRecord& scheme_of(const OutlierRows& rows, const OutlierShareRecord& o) {
  return rows.schemes[static_cast<std::size_t>(o.scheme_position)];
}

std::string outlier_json(const RunRecord& run, const OutlierRows& rows) {
  Json document = run_document(run);
  document["outliers"] = Json::array();
  for (const OutlierRecord& o : rows.outliers) document["outliers"].push_back(row_of(o));
  document["sites"] = Json::array();
  for (const SiteStatisticsRecord& s : rows.statistics) document["sites"].push_back(row_of(s));
  document["shares"] = Json::array();
  for (const OutlierShareRecord& o : rows.shares) document["shares"].push_back(row_of(scheme_of(rows, o), o));
  document["notes"] = run_notes(run);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Table massive_activations(const RunRecord& run, const OutlierRows& rows) {
  Table table;
  table.title = fmt::format("Massive activations of {} on {}: {} windows of {} tokens, compute {}", run.model,
                            run.text, run.windows, run.ctx, run.compute);
  table.columns = {{"where"},       {"token"},           {"channel"},
                   {"onset layer"}, {"last layer"},      {"largest value", 5},
                   {"at layer"},    {"times median", 4}, {"windows"}};
  struct Seen {
    std::int64_t first = 0, last = 0, layer = 0;
    double value = 0;
    Number ratio;
    std::vector<std::int64_t> windows;
  };
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Seen> places;  // module, token, channel
  for (const OutlierRecord& o : rows.outliers) {
    if (!o.massive || !o.value) continue;
    const auto [at, fresh] = places.try_emplace({module_of(o.site, o.layer), o.token, o.channel});
    Seen& seen = at->second;
    if (fresh) seen.first = seen.last = o.layer;
    seen.first = std::min(seen.first, o.layer);
    seen.last = std::max(seen.last, o.layer);
    if (std::abs(*o.value) > std::abs(seen.value)) {
      seen.value = *o.value;
      seen.layer = o.layer;
      seen.ratio = o.ratio;
    }
    if (std::find(seen.windows.begin(), seen.windows.end(), o.window) == seen.windows.end())
      seen.windows.push_back(o.window);
  }
  std::vector<std::pair<std::tuple<std::string, std::int64_t, std::int64_t>, Seen>> order(places.begin(),
                                                                                          places.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second.value) > std::abs(b.second.value);
  });
  for (std::size_t i = 0; i < std::min(order.size(), kPlacesShown); ++i) {
    const auto& [place, seen] = order[i];
    table.rows.push_back({std::get<0>(place), std::get<1>(place), std::get<2>(place), seen.first, seen.last,
                          seen.value, seen.layer, number(seen.ratio),
                          fmt::format("{} of {}", seen.windows.size(), run.windows)});
  }
  if (order.empty())
    table.notes.emplace_back("None: no value is above 100 and 1000 times its tensor's median magnitude.");
  else
    table.notes.emplace_back(
        "Massive: above 100 and at least 1000 times the median magnitude of its tensor in its window. Token: "
        "position in the window. `layer output` is the residual stream.");
  if (order.size() > kPlacesShown)
    table.notes.push_back(fmt::format("{} more tokens and channels: --format json, or the view outliers.",
                                      order.size() - kPlacesShown));
  for (const auto& note : run_notes(run))
    if (note.is_string()) table.notes.push_back(note.get<std::string>());
  return table;
}

Table heavy_sites(const OutlierRows& rows) {
  Table table;
  table.title = "How heavy-tailed each site is: the worst layers";
  table.columns = {{"site"},  {"crest factor", 4}, {"layer"},        {"kurtosis", 4},
                   {"layer"}, {"amax", 4},         {"massive rows"}, {"of"}};
  struct Worst {
    Number crest, kurtosis;
    std::int64_t crest_layer = -1, kurtosis_layer = -1, massive_rows = 0, rows = 0;
    double amax = 0;
  };
  std::vector<std::pair<std::string, Worst>> modules;  // in the order of the forward pass
  for (const SiteStatisticsRecord& s : rows.statistics) {
    const std::string module = module_of(s.site, s.layer);
    auto at = std::find_if(modules.begin(), modules.end(), [&](const auto& m) { return m.first == module; });
    if (at == modules.end()) at = modules.insert(modules.end(), {module, {}});
    Worst& worst = at->second;
    if (s.crest && (!worst.crest || *s.crest > *worst.crest)) {
      worst.crest = s.crest;
      worst.crest_layer = s.layer;
    }
    if (s.kurtosis && (!worst.kurtosis || *s.kurtosis > *worst.kurtosis)) {
      worst.kurtosis = s.kurtosis;
      worst.kurtosis_layer = s.layer;
    }
    worst.amax = std::max(worst.amax, s.amax.value_or(0));
    worst.massive_rows += s.massive_rows;
    worst.rows += s.rows;
  }
  const auto layer = [](std::int64_t l) { return l < 0 ? Value() : Value(l); };
  for (const auto& [module, worst] : modules)
    table.rows.push_back({module, number(worst.crest), layer(worst.crest_layer), number(worst.kurtosis),
                          layer(worst.kurtosis_layer), worst.amax, worst.massive_rows, worst.rows});
  table.notes.emplace_back(
      "Crest factor: largest magnitude over root mean square (a normal tensor of a million values has about "
      "5). Kurtosis: Pearson, normal = 3. Inputs that Linears share are named after the first.");
  return table;
}

Table error_shares(const OutlierRows& rows) {
  Table table;
  table.title = "Local error of each scheme's formats, and what share of its square lies where";
  table.columns = {{"scheme"},
                   {"site"},
                   {"error", 4},
                   {"massive values %", 3},
                   {"massive rows %", 3},
                   {"first tokens %", 3},
                   {"error without first", 4},
                   {"massive values there %", 3}};
  struct Sum {
    double error2 = 0, values = 0, rows = 0, first = 0, reference2 = 0;
    double rest2 = 0, rest_values = 0, rest_reference2 = 0;
    bool defined = true;
  };
  std::vector<std::pair<std::pair<std::int64_t, std::string>, Sum>> sums;
  for (const OutlierShareRecord& o : rows.shares) {
    const std::pair<std::int64_t, std::string> what{o.scheme_position, module_of(o.site, o.layer)};
    auto at = std::find_if(sums.begin(), sums.end(), [&](const auto& s) { return s.first == what; });
    if (at == sums.end()) at = sums.insert(sums.end(), {what, {}});
    Sum& sum = at->second;
    if (!o.error2 || !o.rest_error2) {
      sum.defined = false;
      continue;
    }
    sum.error2 += *o.error2;
    sum.values += *o.error2 * o.massive_values.value_or(0);
    sum.rows += *o.error2 * o.massive_rows.value_or(0);
    sum.first += *o.error2 * o.first_tokens.value_or(0);
    if (o.rel_error.value_or(0) > 0) sum.reference2 += *o.error2 / (*o.rel_error * *o.rel_error);
    sum.rest2 += *o.rest_error2;
    sum.rest_values += *o.rest_error2 * o.rest_massive_values.value_or(0);
    if (o.rest_rel_error.value_or(0) > 0)
      sum.rest_reference2 += *o.rest_error2 / (*o.rest_rel_error * *o.rest_rel_error);
  }
  const auto over = [](double part, double whole) { return whole > 0 ? Number(part / whole) : Number(); };
  const auto root = [](const Number& square) { return square ? Number(std::sqrt(*square)) : Number(); };
  for (const auto& [what, sum] : sums)
    table.rows.push_back({rows.schemes[static_cast<std::size_t>(what.first)].scheme, what.second,
                          sum.defined ? number(root(over(sum.error2, sum.reference2))) : Value("undefined"),
                          percent(over(sum.values, sum.error2)), percent(over(sum.rows, sum.error2)),
                          percent(over(sum.first, sum.error2)),
                          number(root(over(sum.rest2, sum.rest_reference2))),
                          percent(over(sum.rest_values, sum.rest2))});
  table.notes.emplace_back(
      "Pooled over layers; by layer in --format json and the view outlier_shares. Rows are tokens. `layer "
      "output`: what storing the residual stream in the scheme's activation format would cost.");
  return table;
}

std::string write_outliers(const RunRecord& run, const OutlierRows& rows, OutputFormat format, int width) {
  if (format == OutputFormat::json) return outlier_json(run, rows);
  if (format == OutputFormat::csv) {
    Table table;
    for (const OutlierRecord& o : rows.outliers) add_row(table, row_of(o));
    return write(table, format, width);
  }
  std::string text = write(massive_activations(run, rows), format, width);
  text += "\n" + write(heavy_sites(rows), format, width);
  if (!rows.shares.empty()) text += "\n" + write(error_shares(rows), format, width);
  return text;
}

}  // namespace quantmap
