#include "app/size_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/size.hpp"
#include "reports/text.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Value value_of(const std::optional<T>& value) {
  return value ? Value(*value) : Value();
}

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> decode(const SizeRow& row) {
  return row.roofline ? row.roofline->decode_tokens_per_s : std::nullopt;
}
std::optional<double> prefill(const SizeRow& row) {
  return row.roofline ? row.roofline->prefill_seconds : std::nullopt;
}
std::optional<std::int64_t> turning(const SizeRow& row) {
  return row.roofline ? row.roofline->compute_bound_requests : std::nullopt;
}
std::int64_t part_bytes(const SizeRow& row, Part part) { return (row.weights.part(part).bits + 7) / 8; }

std::int64_t embedding_bytes(const SizeRow& row) { return part_bytes(row, Part::embeddings); }
std::int64_t head_bytes(const SizeRow& row) { return part_bytes(row, Part::lm_head); }

// Every figure, as the contract names it.
Table all_figures(const SizeReport& report, bool kv_known) {
  Table table;
  table.columns = {{"scheme"},        {"parameters"},    {"weight_bytes"},        {"embedding_bytes"},
                   {"lm_head_bytes"}, {"bpw_quantized"}, {"bpw_model"},           {"kv_bytes_per_token"},
                   {"kv_bytes"},      {"cached_tokens"}, {"decode_tokens_per_s"}, {"prefill_seconds"}};
  for (const SizeRow& row : report.rows) {
    const auto kv = [&](double bytes) { return kv_known ? Value(bytes) : Value(); };
    table.rows.push_back({row.scheme, row.weights.parameters(), row.weights.bytes(), embedding_bytes(row),
                          head_bytes(row), value_of(row.weights.bpw_quantized()), row.weights.bpw_model(),
                          kv(row.kv.per_token), kv(row.kv_bytes), value_of(row.cached_tokens),
                          value_of(decode(row)), value_of(prefill(row))});
  }
  return table;
}

Table summary(const SizeReport& report, const ModelMap& map) {
  const bool machine = report.request.machine.has_value();
  Table table;
  table.title =
      fmt::format("{}: {} parameters", report.model, short_number(static_cast<double>(map.parameters()), 12));
  if (map.active_parameters() != map.parameters())
    table.title += fmt::format(", {} of them active for a token",
                               short_number(static_cast<double>(map.active_parameters()), 12));
  table.columns = {
      {"scheme"},         {"weights"},
      {"bits/weight", 4}, {"bits/param", 4},
      {"KV/token"},       {fmt::format("KV of {} × {}", report.request.requests, report.request.context)}};
  if (machine) {
    table.columns.push_back({"tokens that fit"});
    table.columns.push_back({"decode tok/s", 4});
    table.columns.push_back({"prefill s", 3});
    table.columns.push_back({"compute-bound from"});
  }
  for (const SizeRow& row : report.rows) {
    std::vector<Value> cells{row.scheme, size_text(static_cast<double>(row.weights.bytes())),
                             value_of(row.weights.bpw_quantized()), row.weights.bpw_model()};
    cells.emplace_back(map.caches.empty() ? Value() : Value(size_text(row.kv.per_token)));
    cells.emplace_back(map.caches.empty() ? Value() : Value(size_text(row.kv_bytes)));
    if (machine) {
      cells.push_back(value_of(row.cached_tokens));
      cells.push_back(value_of(decode(row)));
      cells.push_back(value_of(prefill(row)));
      const auto from = turning(row);
      cells.emplace_back(from ? Value(fmt::format("{} requests", *from)) : Value());
    }
    table.rows.push_back(std::move(cells));
  }
  for (const std::string& note : report.notes) table.notes.push_back(note);
  for (const SizeRow& row : report.rows) {
    for (const std::string& note : row.notes) table.notes.push_back(note);
    if (!row.spec.empty() && row.spec != row.scheme && row.scheme != "BF16")
      table.notes.push_back(fmt::format("{} = {}", row.scheme, row.spec));
  }
  if (!machine) return table;
  std::vector<std::string> said;
  for (const SizeRow& row : report.rows)
    if (row.roofline)
      for (const std::string& line : row.roofline->assumptions)
        if (std::find(said.begin(), said.end(), line) == said.end()) said.push_back(line);
  for (const std::string& line : said) table.notes.push_back(line);
  const Machine& gpu = *report.request.machine;
  table.notes.push_back(fmt::format(
      "{}: {}{}{}", gpu.name, gpu.memory > 0 ? size_text(gpu.memory) + ", " : "",
      gpu.bandwidth > 0 ? fmt::format("{} GB/s", short_number(gpu.bandwidth / 1e9, 5)) : "no bandwidth given",
      gpu.source.empty() ? "" : "; " + gpu.source));
  table.notes.emplace_back(
      "a bound: decoding reads every weight once a step and each request's cache, prefill multiplies one "
      "request's "
      "tokens at the dense rate; nothing is taken off for launches, traffic between kernels, or memory an "
      "engine keeps");
  return table;
}

Table parts(const SizeReport& report) {
  Table table;
  table.title = "Bytes by part (scales, zero points and padding in brackets)";
  table.columns = {{"scheme"}};
  std::vector<Part> shown;
  for (const Part part : kAllParts)
    if (std::any_of(report.rows.begin(), report.rows.end(),
                    [&](const SizeRow& row) { return row.weights.part(part).values > 0; })) {
      shown.push_back(part);
      table.columns.push_back({std::string(part_name(part))});
    }
  for (const SizeRow& row : report.rows) {
    std::vector<Value> cells{row.scheme};
    for (const Part part : shown) {
      const PartBytes& bytes = row.weights.part(part);
      std::string text = size_text(static_cast<double>(bytes.bits) / 8);
      if (bytes.overhead > 0)
        text += fmt::format(" ({})", size_text(static_cast<double>(bytes.overhead) / 8));
      cells.emplace_back(std::move(text));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string sizes_json(const SizeReport& report, const ModelMap& map) {
  Json document;
  document["model"] = report.model;
  document["model_type"] = report.model_type;
  document["parameters"] = map.parameters();
  document["active_parameters"] = map.active_parameters();
  document["context"] = report.request.context;
  document["requests"] = report.request.requests;
  if (report.request.machine) {
    const Machine& gpu = *report.request.machine;
    document["gpu"] = {{"name", gpu.name},
                       {"memory_bytes", gpu.memory},
                       {"bandwidth", gpu.bandwidth},
                       {"source", gpu.source}};
    document["engine"] = gpu.sm == 0 ? Json(nullptr) : Json(report.request.engine);
  } else {
    document["gpu"] = nullptr;
  }
  const bool kv_known = !map.caches.empty();
  Json rows = Json::array();
  for (const SizeRow& row : report.rows) {
    Json one;
    one["scheme"] = row.scheme;
    one["spec"] = row.spec.empty() ? Json(nullptr) : Json(row.spec);
    one["parameters"] = row.weights.parameters();
    one["weight_bytes"] = row.weights.bytes();
    one["embedding_bytes"] = embedding_bytes(row);
    one["lm_head_bytes"] = head_bytes(row);
    one["bpw_quantized"] = json_of(row.weights.bpw_quantized());
    one["bpw_model"] = row.weights.bpw_model();
    one["kv_bytes_per_token"] = kv_known ? Json(row.kv.per_token) : Json(nullptr);
    one["kv_bytes"] = kv_known ? Json(row.kv_bytes) : Json(nullptr);
    one["cached_tokens"] = json_of(row.cached_tokens);
    one["decode_tokens_per_s"] = json_of(decode(row));
    one["prefill_seconds"] = json_of(prefill(row));
    one["compute_bound_requests"] = json_of(turning(row));
    one["assumptions"] = row.roofline ? Json(row.roofline->assumptions) : Json::array();
    Json bytes;
    for (const Part part : kAllParts)
      if (row.weights.part(part).values > 0) bytes[std::string(part_name(part))] = part_bytes(row, part);
    one["parts"] = std::move(bytes);
    one["notes"] = row.notes;
    rows.push_back(std::move(one));
  }
  document["rows"] = std::move(rows);
  document["notes"] = report.notes;
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string repeated(std::string_view text, std::int64_t times) {
  std::string out;
  for (std::int64_t i = 0; i < times; ++i) out += text;
  return out;
}

struct Bar {
  std::string label;
  double weights = 0, cache = 0;
};

// Requests 1, 8, 32 and those asked for, at the context asked for and at four times it where the model takes
// it.
std::vector<Bar> bars_of(const SizeReport& report, const ModelMap& map, const SizeRow& row) {
  std::vector<std::int64_t> counts{1, 8, 32, report.request.requests};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<std::int64_t> contexts{report.request.context};
  if (const std::int64_t longer = 4 * report.request.context; map.max_position >= longer)
    contexts.push_back(longer);
  const double share =
      report.request.context > 0 ? row.kv.per_request / static_cast<double>(report.request.context) : 0;
  std::vector<Bar> bars;
  for (const std::int64_t context : contexts)
    for (const std::int64_t requests : counts) {
      // Beyond the context asked for, a cache grows by what it grows there.
      const double one = share * static_cast<double>(report.request.context) +
                         row.kv.per_token * static_cast<double>(context - report.request.context);
      bars.push_back({fmt::format("{} × {}", requests, context), static_cast<double>(row.weights.bytes()),
                      one * static_cast<double>(requests)});
    }
  return bars;
}

}  // namespace

std::string size_text(double bytes) { return format_size(static_cast<std::int64_t>(std::ceil(bytes))); }

std::string size_picture(const SizeReport& report, const ModelMap& map, int width) {
  if (map.caches.empty() || report.rows.empty()) return {};
  const double memory = report.request.machine ? report.request.machine->memory : 0;
  constexpr std::size_t kFigures = 26;  // ` 15.256 GiB + 36 GiB`
  double largest = 0;
  std::size_t label = 0;
  for (const SizeRow& row : report.rows)
    for (const Bar& bar : bars_of(report, map, row)) {
      largest = std::max(largest, bar.weights + bar.cache);
      label = std::max(label, display_width(bar.label));
    }
  const auto columns = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(width) - static_cast<std::int64_t>(label + kFigures + 4), 10, 120);
  // Where the weights fit, the scale ends at twice the memory: longer bars are cut and marked.
  const bool fits = std::all_of(report.rows.begin(), report.rows.end(), [&](const SizeRow& row) {
    return static_cast<double>(row.weights.bytes()) <= memory;
  });
  const double whole = fits ? std::min(largest, 2 * memory) : largest;
  const auto cells = [&](double bytes) {
    return static_cast<std::int64_t>(std::llround(bytes / whole * static_cast<double>(columns)));
  };
  std::string text = fmt::format(
      "\nWeights (█) against cache (░), requests × context{}\n",
      memory > 0 ? fmt::format("; │ is the end of {}'s {}", report.request.machine->name, size_text(memory))
                 : "");
  for (const SizeRow& row : report.rows) {
    text += printable(row.scheme) + "\n";
    for (const Bar& bar : bars_of(report, map, row)) {
      const std::int64_t end = std::min(columns, cells(bar.weights + bar.cache));
      const std::int64_t full = std::min(end, std::max<std::int64_t>(1, cells(bar.weights)));
      std::string drawn = repeated("█", full) + repeated("░", end - full);
      std::int64_t drawn_columns = end;
      const bool cut = cells(bar.weights + bar.cache) > columns;
      if (const std::int64_t mark = memory > 0 ? cells(memory) : 0;
          mark > 0 && mark <= columns && end < mark) {
        drawn += repeated(" ", mark - end - 1) + "│";
        drawn_columns = mark;
      }
      text += fmt::format("  {}{}  {}{}{} {} + {}\n",
                          repeated(" ", static_cast<std::int64_t>(label - display_width(bar.label))),
                          bar.label, drawn, cut ? "…" : " ", repeated(" ", columns - drawn_columns),
                          size_text(bar.weights), size_text(bar.cache));
    }
  }
  return text;
}

std::string write_sizes(const SizeReport& report, const ModelMap& map, OutputFormat format, int width) {
  if (format == OutputFormat::json) return sizes_json(report, map);
  if (format == OutputFormat::csv) return write(all_figures(report, !map.caches.empty()), format, width);
  std::string text = write(summary(report, map), format, width) + "\n" + write(parts(report), format, width);
  if (format == OutputFormat::table) text += size_picture(report, map, width);
  return text;
}

}  // namespace quantmap
