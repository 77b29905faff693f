#include "app/inspect_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/size_report.hpp"
#include "map/name_of_choices.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownNames = 12;

Json choice_json(const std::optional<NumberChoice>& choice) {
  if (!choice) return nullptr;
  Json one;
  one["format"] = choice->format;
  one["bits"] = choice->bits > 0 ? Json(choice->bits) : Json(nullptr);
  one["granularity"] = choice->granularity.empty() ? Json(nullptr) : Json(choice->granularity);
  one["group_size"] = choice->group_size > 0 ? Json(choice->group_size) : Json(nullptr);
  if (choice->block_rows > 0) one["block"] = {choice->block_rows, choice->block_cols};
  one["symmetric"] = choice->symmetric ? Json(*choice->symmetric) : Json(nullptr);
  one["dynamic"] = choice->dynamic == "true"    ? Json(true)
                   : choice->dynamic == "false" ? Json(false)
                   : choice->dynamic.empty()    ? Json(nullptr)
                                                : Json(choice->dynamic);
  one["source"] = choice->source;
  return one;
}

std::string inspection_json(const ModelSource& source, const Inspection& inspection) {
  Json document;
  document["model"] = source.path;
  document["model_type"] = inspection.model_type.empty() ? Json(nullptr) : Json(inspection.model_type);
  document["name"] = inspection.name;
  document["quant_method"] =
      source.quantization.says_anything() ? Json(source.quantization.method) : Json(nullptr);
  document["weights"] = choice_json(inspection.weights);
  document["activations"] = choice_json(inspection.activations);
  document["kv_cache"] = choice_json(inspection.kv);
  Json rules = Json::array();
  for (const QuantGroup& rule : inspection.rules)
    rules.push_back({{"name", name_of(rule)},
                     {"targets", rule.targets},
                     {"weights", choice_json(rule.weights)},
                     {"activations", choice_json(rule.activations)}});
  document["rules"] = std::move(rules);
  document["ignored"] = inspection.ignored;
  document["ignored_by"] = std::string(rule_name(inspection.ignore_rule));
  Json stays = Json::array();
  for (const ModuleKind& kind : inspection.high_precision)
    stays.push_back({{"modules", kind.name},
                     {"count", kind.modules},
                     {"dtype", kind.format.empty() ? Json(nullptr) : Json(kind.format)}});
  document["high_precision"] = std::move(stays);
  Json tensors = Json::array();
  if (source.contents)
    for (const TensorEntry& tensor : source.contents->tensors)
      tensors.push_back(
          {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
  document["tensors"] = std::move(tensors);
  document["parameters"] = inspection.parameters ? Json(*inspection.parameters) : Json(nullptr);
  document["bpw_model"] = inspection.bpw_model ? Json(*inspection.bpw_model) : Json(nullptr);
  document["warnings"] = inspection.warnings;
  document["notes"] = inspection.notes;
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

Table rules_table(const Inspection& inspection) {
  Table table;
  table.title = "Rules: the first that a module falls under counts";
  table.columns = {{"rule"}, {"weights"}, {"activations"}, {"modules named"}, {"the first"}};
  for (const QuantGroup& rule : inspection.rules)
    table.rows.push_back({name_of(rule), choice_text(rule.weights), choice_text(rule.activations),
                          static_cast<std::int64_t>(rule.targets.size()),
                          rule.targets.empty() ? Value(std::string("every Linear of the decoder layers"))
                                               : Value(rule.targets.front())});
  return table;
}

Table high_precision_table(const Inspection& inspection) {
  Table table;
  table.title = "Stays in high precision";
  table.columns = {{"modules"}, {"count"}, {"stored as"}};
  for (const ModuleKind& kind : inspection.high_precision)
    table.rows.push_back({kind.name, kind.modules, kind.format.empty() ? Value() : Value(kind.format)});
  return table;
}

Table storage_table(const ModelSource& source, const Inspection& inspection) {
  Table table;
  table.title = fmt::format("In the files ({} tensors, {})", source.contents->tensors.size(),
                            size_text(static_cast<double>(source.contents->bytes)));
  table.columns = {{"stored as"}, {"format"}, {"modules"}, {"parameters"}, {"bytes"}, {"bits/parameter", 4}};
  for (const StorageSummary& one : inspection.storage)
    table.rows.push_back(
        {one.storage, one.format, one.modules, one.parameters, size_text(static_cast<double>(one.bytes)),
         one.parameters > 0
             ? Value(8.0 * static_cast<double>(one.bytes) / static_cast<double>(one.parameters))
             : Value()});
  return table;
}

Table ignored_table(const Inspection& inspection, bool all) {
  Table table;
  table.title = fmt::format("Ignored by the configuration ({}), {}", rule_name(inspection.ignore_rule),
                            inspection.ignored.size());
  table.columns = {{"module"}};
  for (const std::string& name : inspection.ignored) {
    if (!all && table.rows.size() == kShownNames) {
      table.notes.push_back(
          fmt::format("{} more: --format json lists all", inspection.ignored.size() - kShownNames));
      break;
    }
    table.rows.push_back({name});
  }
  return table;
}

Table tensors_table(const ModelSource& source) {
  Table table;
  table.title = "Tensors";
  table.columns = {{"name"}, {"dtype"}, {"shape"}, {"bytes"}};
  for (const TensorEntry& tensor : source.contents->tensors)
    table.rows.push_back(
        {tensor.name, tensor.dtype, fmt::format("[{}]", fmt::join(tensor.shape, ",")), tensor.bytes});
  return table;
}

}  // namespace

std::string choice_text(const std::optional<NumberChoice>& choice) {
  if (!choice) return "16 bit";
  std::string text = choice->format;
  if (choice->format == "mixed") return text;
  const auto add = [&](const std::string& more) { text.append(", ").append(more); };
  if (choice->granularity == "group")
    add(fmt::format("groups of {}", choice->group_size));
  else if (choice->granularity == "block")
    add(fmt::format("blocks of {} × {}", choice->block_rows, choice->block_cols));
  else if (!choice->granularity.empty())
    add("per " + choice->granularity);
  if (choice->symmetric == false) add("asymmetric");
  if (choice->dynamic == "true") add("dynamic");
  if (choice->dynamic == "false") add("static");
  if (choice->dynamic == "local") add("block scales dynamic");
  return text;
}

Table choices_table(const std::string& title, const Inspection& inspection) {
  Table table;
  table.title = title;
  table.columns = {{"choice"}, {"what"}, {"source"}};
  const auto add = [&](const char* name, const std::optional<NumberChoice>& choice) {
    table.rows.push_back({std::string(name), choice_text(choice), choice ? Value(choice->source) : Value()});
  };
  add("weights", inspection.weights);
  add("activations", inspection.activations);
  add("KV cache", inspection.kv);
  return table;
}

std::string write_inspection(const ModelSource& source, const Inspection& inspection, bool tensors,
                             OutputFormat format, int width) {
  if (format == OutputFormat::json) return inspection_json(source, inspection);
  if (format == OutputFormat::csv)
    return write(source.contents ? tensors_table(source) : choices_table("", inspection), format, width);
  Table choices = choices_table(
      fmt::format("{}: {}{}", source.path, inspection.name,
                  inspection.model_type.empty() ? "" : fmt::format(" ({})", inspection.model_type)),
      inspection);
  if (inspection.parameters) choices.notes.push_back(fmt::format("{} parameters", *inspection.parameters));
  if (inspection.bpw_model)
    choices.notes.push_back(fmt::format("{:.4g} bits a parameter, scales counted", *inspection.bpw_model));
  for (const std::string& note : inspection.notes) choices.notes.push_back(note);
  for (const std::string& warning : inspection.warnings) choices.notes.push_back("warning: " + warning);
  std::string text = write(choices, format, width);
  if (inspection.rules.size() > 1) text += "\n" + write(rules_table(inspection), format, width);
  if (source.contents) text += "\n" + write(storage_table(source, inspection), format, width);
  if (!inspection.ignored.empty()) text += "\n" + write(ignored_table(inspection, tensors), format, width);
  if (!inspection.high_precision.empty())
    text += "\n" + write(high_precision_table(inspection), format, width);
  if (tensors && source.contents) text += "\n" + write(tensors_table(source), format, width);
  return text;
}

}  // namespace quantmap
