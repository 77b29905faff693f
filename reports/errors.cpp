#include "reports/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/run_document.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTotalSite = "all";
constexpr std::size_t kWorst = 3;
constexpr std::size_t kSitesShown = 120;  // more are counted, not printed

Json row_of(const SchemeRecord& scheme, const LayerErrorRecord& e) {
  return {{"layer", e.layer},
          {"site", e.site},
          {"scope", e.scope},
          {"kind", e.kind},
          {"scheme", scheme.scheme},
          {"rel_error", json_of(e.rel_error)},
          {"rel_error_residual", json_of(e.rel_error_residual)},
          {"sqnr_db", json_of(e.sqnr_db)},
          {"cosine", json_of(e.cosine)},
          {"max_abs_error", json_of(e.max_abs_error)},
          {"amax", json_of(e.amax)},
          {"kurtosis", json_of(e.kurtosis)},
          {"saturated", e.saturated},
          {"nonfinite", e.nonfinite},
          {"count", e.count},
          {"row_error_p50", json_of(e.row_error_p50)},
          {"row_error_p90", json_of(e.row_error_p90)},
          {"rel_error_rest", json_of(e.rel_error_rest)},
          {"status", e.status}};
}

const SchemeRecord& scheme_of(std::span<const SchemeRecord> schemes, const LayerErrorRecord& e) {
  return schemes[static_cast<std::size_t>(e.scheme_position)];
}

bool is_total(const LayerErrorRecord& e) { return e.layer < 0 && e.site == kTotalSite; }

std::string number(const Number& value) {
  if (!value) return "-";
  if (*value == 0) return "0";
  return std::abs(*value) < 0.001 ? fmt::format("{:.1e}", *value) : fmt::format("{:.3g}", *value);
}

// `3 down_proj`, `12` (its keys), `4 layer` (the residual stream), `lm_head`.
std::string short_place(const LayerErrorRecord& e) {
  std::string site = e.site;
  const std::string prefix = fmt::format("model.layers.{}", e.layer);
  std::string module;
  if (site.starts_with(prefix)) {
    module = site.substr(prefix.size());
    module = module.substr(0, module.find(' '));
    module = module.substr(module.rfind('.') == std::string::npos ? 0 : module.rfind('.') + 1);
    // One place a layer: its kind is said already.
    if (module == "self_attn") return fmt::format("{}", e.layer);
    return fmt::format("{} {}", e.layer, module.empty() ? "layer" : module);
  }
  return site.substr(0, site.find(' '));
}

// Undefined is worst: nothing is known of it.
double rank(const LayerErrorRecord& e) { return e.row_error_p50 ? *e.row_error_p50 : INFINITY; }

using What = std::pair<std::string, std::string>;  // kind, scope

// In the order of the rows.
std::vector<What> whats(std::span<const LayerErrorRecord> errors) {
  std::vector<What> all;
  for (const LayerErrorRecord& e : errors)
    if (const What what{e.kind, e.scope}; is_total(e) && std::find(all.begin(), all.end(), what) == all.end())
      all.push_back(what);
  return all;
}

Table error_sites(std::span<const SchemeRecord> schemes, std::span<const LayerErrorRecord> errors) {
  Table table;
  table.title = "Every site";
  table.columns = {{"site"},    {"kind"},      {"scope"},     {"scheme"},    {"median row"},
                   {"row p90"}, {"pooled"},    {"rest"},      {"/stream"},   {"SQNR dB"},
                   {"cosine"},  {"max error"}, {"saturated"}, {"not finite"}};
  for (const LayerErrorRecord& e : errors) {
    if (is_total(e)) continue;
    table.rows.push_back({e.site, e.kind, e.scope, scheme_of(schemes, e).scheme, number(e.row_error_p50),
                          number(e.row_error_p90), number(e.rel_error), number(e.rel_error_rest),
                          number(e.rel_error_residual), e.sqnr_db ? fmt::format("{:.1f}", *e.sqnr_db) : "-",
                          e.cosine ? fmt::format("{:.5f}", *e.cosine) : "-", number(e.max_abs_error),
                          e.saturated, e.nonfinite});
  }
  return table;
}

}  // namespace

Table error_summary(const RunRecord& run, std::span<const SchemeRecord> schemes,
                    std::span<const LayerErrorRecord> errors) {
  Table table;
  table.title = run.windows > 0 ? fmt::format("{} on {}: {} windows of {} tokens, compute {}", run.model,
                                              run.text, run.windows, run.ctx, run.compute)
                                : fmt::format("{}: weights, compute {}", run.model, run.compute);
  // One column for the three that name a row: it is repeated where a narrow terminal folds the table.
  table.columns = {{"scheme, kind, scope"}, {"median"}, {"p90"}, {"pooled"}, {"worst layers by median"}};
  std::int64_t exact = 0;
  for (const SchemeRecord& scheme : schemes)
    for (const LayerErrorRecord& total : errors) {
      if (!is_total(total) || total.scheme_position != scheme.position) continue;
      std::vector<const LayerErrorRecord*> sites;
      for (const LayerErrorRecord& e : errors)
        if (!is_total(e) && e.scheme_position == scheme.position && e.kind == total.kind &&
            e.scope == total.scope && rank(e) > 0)
          sites.push_back(&e);
      std::stable_sort(sites.begin(), sites.end(),
                       [](const auto* a, const auto* b) { return rank(*a) > rank(*b); });
      std::string worst;
      for (std::size_t i = 0; i < std::min(kWorst, sites.size()); ++i)
        worst +=
            fmt::format("{}{} {}", i ? ", " : "", short_place(*sites[i]), number(sites[i]->row_error_p50));
      if (worst.empty()) {
        ++exact;
        continue;
      }
      table.rows.push_back({fmt::format("{} {} {}", scheme.scheme, total.kind, total.scope),
                            number(total.row_error_p50), number(total.row_error_p90), number(total.rel_error),
                            worst});
    }
  if (exact > 0)
    table.notes.push_back(fmt::format(
        "{} more kinds and scopes have no error at all: these schemes leave them as they are.", exact));
  table.notes.emplace_back(
      "Relative errors. median, p90: of the rows (tokens; output channels of a weight); pooled: of the whole "
      "tensor, which one massive token can own.");
  table.notes.emplace_back(
      "local: the quantized operation on the reference's input; inherited: the reference's operation on the "
      "scheme's input; total: both.");
  if (std::any_of(errors.begin(), errors.end(), [](const auto& e) { return e.kind == "attention_weights"; }))
    table.notes.emplace_back(
        "attention_weights: KL of each query's distribution, in nats; pooled: the mean.");
  std::map<std::string, std::int64_t> troubles;
  for (const LayerErrorRecord& e : errors)
    if (!is_total(e) && e.status != "ok") ++troubles[scheme_of(schemes, e).scheme];
  for (const auto& [scheme, count] : troubles)
    table.notes.push_back(
        fmt::format("{}: {} rows are undefined or hold values that are not finite (status)", scheme, count));
  for (const auto& note : run_notes(run))
    if (note.is_string()) table.notes.push_back(note.get<std::string>());
  return table;
}

Table error_layers(const SchemeRecord& scheme, std::span<const LayerErrorRecord> errors) {
  static const std::map<std::string, std::string> kShort = {
      {"attention_weights", "attn KL"}, {"attention_output", "attn"}, {"activation", "input"}};
  Table table;
  table.title = scheme.scheme + ": the worst median row of each layer's sites";
  table.columns = {{"layer"}};
  std::vector<std::pair<What, bool>> columns;  // what, the residual stream
  const std::vector<What> all = whats(errors);
  for (const What& what : all) {
    // One scope of each kind: what quantizing this place alone does, or else whatever was asked for.
    const bool local = std::find(all.begin(), all.end(), What{what.first, "local"}) != all.end();
    if (local && what.second != "local" && what.first != "output") continue;
    if (local && what.second == "inherited") continue;
    columns.push_back({what, false});
  }
  if (std::find(all.begin(), all.end(), What{"activation", "total"}) != all.end())
    columns.push_back({{"activation", "total"}, true});
  std::int64_t layers = 0;
  for (const LayerErrorRecord& e : errors) layers = std::max(layers, e.layer + 1);
  std::map<std::pair<std::int64_t, std::size_t>, const LayerErrorRecord*> cells;
  for (const LayerErrorRecord& e : errors) {
    if (e.layer < 0 || e.scheme_position != scheme.position) continue;
    const bool stream = e.site == fmt::format("model.layers.{} output", e.layer);
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].first == What{e.kind, e.scope} && columns[c].second == stream) {
        const LayerErrorRecord*& cell = cells[{e.layer, c}];
        if (!cell || rank(e) > rank(*cell)) cell = &e;
      }
  }
  for (const auto& [what, stream] : columns) {
    const auto shorter = kShort.find(what.first);
    std::string name = shorter == kShort.end() ? what.first : shorter->second;
    if (what.second != "local") name += " " + what.second;
    table.columns.push_back({stream ? "stream" : name});
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<Value> row{layer};
    bool any = false;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto cell = cells.find({layer, c});
      any = any || cell != cells.end();
      row.emplace_back(cell == cells.end() ? std::string() : number(cell->second->row_error_p50));
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

Table error_rows(std::span<const SchemeRecord> schemes, std::span<const LayerErrorRecord> errors) {
  Table table;
  for (const LayerErrorRecord& e : errors) add_row(table, row_of(scheme_of(schemes, e), e));
  return table;
}

std::string error_json(const RunRecord& run, std::span<const SchemeRecord> schemes,
                       std::span<const LayerErrorRecord> errors) {
  Json document = run_document(run);
  document["rows"] = Json::array();
  for (const LayerErrorRecord& e : errors) document["rows"].push_back(row_of(scheme_of(schemes, e), e));
  document["notes"] = run_notes(run);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_errors(const RunRecord& run, std::span<const SchemeRecord> schemes,
                         std::span<const LayerErrorRecord> errors, OutputFormat format, int width) {
  switch (format) {
    case OutputFormat::json:
      return error_json(run, schemes, errors);
    case OutputFormat::csv:
      return write(error_rows(schemes, errors), format, width);
    case OutputFormat::table:
    case OutputFormat::md:
      break;
  }
  std::string text = write(error_summary(run, schemes, errors), format, width);
  for (const SchemeRecord& scheme : schemes)
    if (const Table layers = error_layers(scheme, errors); !layers.rows.empty())
      text += "\n" + write(layers, format, width);
  const auto sites = static_cast<std::size_t>(
      std::count_if(errors.begin(), errors.end(), [](const LayerErrorRecord& e) { return !is_total(e); }));
  if (sites <= kSitesShown)
    text += "\n" + write(error_sites(schemes, errors), format, width);
  else
    text += fmt::format(
        "\nAll {} rows: --format csv or json, or the view layer_errors (run {}); --sites RE shows some "
        "here.\n",
        sites, run.id);
  return text;
}

}  // namespace quantmap
