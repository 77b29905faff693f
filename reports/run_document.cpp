#include "reports/run_document.hpp"

#include <utility>
#include <vector>

namespace quantmap {

using Json = nlohmann::ordered_json;

Json run_document(const RunRecord& run) {
  Json document;
  document["run"] = run.id;
  document["model"] = run.model;
  document["fingerprints"] = {{"model", run.model_sha256},
                              {"tokenizer", run.tokenizer_sha256},
                              {"text", run.text_sha256},
                              {"token_ids", run.token_ids_sha256}};
  const auto first_ids = nlohmann::json::parse(run.first_ids, nullptr, false);
  document["protocol"] = {{"name", run.protocol.empty() ? Json(nullptr) : Json(run.protocol)},
                          {"ctx", run.ctx},
                          {"stride", run.stride > 0 ? Json(run.stride) : Json(nullptr)},
                          {"windows", run.windows},
                          {"score", run.score},
                          {"bos", run.bos},
                          {"compute", run.compute},
                          {"text_tokens", run.text_tokens},
                          {"dropped_tokens", run.dropped_tokens},
                          {"first_ids", first_ids.is_discarded() ? Json::array() : Json(first_ids)}};
  return document;
}

Json run_notes(const RunRecord& run) {
  const auto notes = nlohmann::json::parse(run.notes, nullptr, false);
  return notes.is_array() ? Json(notes) : Json::array();
}

void add_row(Table& table, const Json& fields) {
  std::vector<Value> row;
  for (const auto& [name, value] : fields.items()) {
    if (table.rows.empty()) table.columns.push_back({name});
    if (value.is_null())
      row.emplace_back();
    else if (value.is_number_integer())
      row.emplace_back(value.get<std::int64_t>());
    else if (value.is_number())
      row.emplace_back(value.get<double>());
    else
      row.emplace_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  table.rows.push_back(std::move(row));
}

}  // namespace quantmap
