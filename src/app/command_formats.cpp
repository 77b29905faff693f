#include <fmt/format.h>

#include "app/options.hpp"
#include "core/error.hpp"
#include "formats/spec.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {
namespace {

// A short name is listed with its expansion before everything in it is built.
std::string state_of(const ShortName& name) {
  try {
    Scheme::parse(name.name);
    return "ready";
  } catch (const Error&) {
    return "not built yet";
  }
}

}  // namespace

int run_formats(const CommandLine& line) {
  CommandSpec spec;
  spec.name = "formats";
  spec.does = "The number formats that schemes can name, and the short names of schemes.";
  spec.examples = "  quantmap formats --format md\n";
  CommonOptions common;
  if (!parse_command(line, spec, common)) return 0;
  Table table;
  table.title = "Formats";
  table.columns = {{"format"}, {"bits/value"}, {"block"}, {"largest"}, {"scale"}, {"specification"}};
  constexpr std::int64_t kRows = 128, kCols = 4096;
  for (const Format& format : formats()) {
    // Bits of a large weight matrix in the format's default granularity.
    const QuantSpec weight = parse_quant_spec(format.id, Role::weight);
    const double bits = static_cast<double>(storage_bits(weight, kRows, kCols)) / (kRows * kCols);
    std::vector<Value> row{std::string(format.id), bits};
    row.push_back(format.block > 0 ? Value(std::int64_t{format.block}) : Value());
    row.push_back(format.max > 0 ? Value(double{format.max}) : Value());
    row.emplace_back(std::string(format.scale));
    row.emplace_back(std::string(format.reference));
    table.rows.push_back(std::move(row));
  }
  table.notes.emplace_back(fmt::format(
      "bits/value: scales counted, for weights of {} × {} in the default granularity", kRows, kCols));
  std::string text = write(table, common.format, output_width(common));
  if (common.format == OutputFormat::table || common.format == OutputFormat::md) {
    Table names;
    names.title = "Short names of schemes (with +KVFP8 or +KVINT8 for the cache)";
    names.columns = {{"name"}, {"expands to"}, {"state"}};
    for (const ShortName& name : short_names())
      names.rows.push_back({std::string(name.name), std::string(name.expansion), state_of(name)});
    text += "\n" + write(names, common.format, output_width(common));
  }
  emit(common, text);
  return 0;
}

}  // namespace quantmap
