#include "evals/token_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::json;

constexpr const char* kWhat = "token ids";
constexpr const char* kWanted = "a JSON array of arrays of token ids";

struct Reader {
  const std::string& path;
  std::int64_t vocab;

  std::vector<std::int32_t> ids(const Json& list, std::size_t w) const {
    std::vector<std::int32_t> ids;
    for (std::size_t t = 0; t < list.size(); ++t) {
      const std::string place = fmt::format("window {}, position {}", w, t);
      // Only numbers are shown as they are: anything else may be of any length.
      if (!list[t].is_number_integer())
        fail_input(kWhat, path, place, "an integer",
                   list[t].is_number() ? list[t].dump() : list[t].type_name());
      const bool fits = list[t].is_number_unsigned()
                            ? list[t].get<std::uint64_t>() < static_cast<std::uint64_t>(vocab)
                            : false;
      if (!fits) fail_input(kWhat, path, place, fmt::format("an id from 0 to {}", vocab - 1), list[t].dump());
      ids.push_back(list[t].get<std::int32_t>());
    }
    if (ids.size() < 2)
      fail_input(kWhat, path, fmt::format("window {}", w), "2 ids or more", std::to_string(ids.size()));
    return ids;
  }

  // A list as long as the ids.
  const Json& list_of(const Json& window, const char* key, std::size_t w, std::size_t length) const {
    const Json& list = window.at(key);
    if (!list.is_array() || list.size() != length)
      fail_input(kWhat, path, fmt::format("window {}, {}", w, key),
                 fmt::format("an array of {} values", length),
                 list.is_array() ? fmt::format("one of {}", list.size()) : list.type_name());
    return list;
  }

  std::vector<std::uint8_t> score(const Json& list, std::size_t w) const {
    std::vector<std::uint8_t> score;
    for (std::size_t t = 0; t < list.size(); ++t) {
      const bool is_flag = list[t].is_boolean() || list[t] == 0 || list[t] == 1;
      if (!is_flag)
        fail_input(kWhat, path, fmt::format("window {}, score of position {}", w, t), "0 or 1",
                   list[t].is_number() ? list[t].dump() : list[t].type_name());
      score.push_back(list[t] == true || list[t] == 1 ? 1 : 0);
    }
    if (std::none_of(score.begin() + 1, score.end(), [](std::uint8_t flag) { return flag == 1; }))
      fail_input(kWhat, path, fmt::format("window {}, score", w), "a token behind the first that is scored",
                 "none");
    return score;
  }

  std::string label(const Json& value, std::size_t w) const {
    if (!value.is_string() || !is_plain_text(value.get<std::string>()) || value.get<std::string>().empty())
      fail_input(kWhat, path, fmt::format("window {}, segment", w), "labels of plain text",
                 value.is_string() ? quoted(value.get<std::string>()) : value.type_name());
    return value.get<std::string>();
  }

  IdWindow window(const Json& value, std::size_t w) const {
    IdWindow read;
    if (!value.is_object()) {
      if (!value.is_array()) fail_input(kWhat, path, fmt::format("window {}", w), kWanted, value.type_name());
      read.ids = ids(value, w);
      return read;
    }
    for (const auto& [key, unused] : value.items())
      if (key != "ids" && key != "score" && key != "segment")
        fail_input(kWhat, path, fmt::format("window {}", w), "the keys ids, score and segment", quoted(key));
    if (!value.contains("ids") || !value["ids"].is_array())
      fail_input(kWhat, path, fmt::format("window {}, ids", w), "an array of token ids",
                 value.contains("ids") ? value["ids"].type_name() : "no such key");
    read.ids = ids(value["ids"], w);
    if (value.contains("score")) read.score = score(list_of(value, "score", w, read.ids.size()), w);
    if (!value.contains("segment")) return read;
    if (value["segment"].is_string()) {
      read.segments.assign(read.ids.size(), label(value["segment"], w));
    } else {
      for (const Json& one : list_of(value, "segment", w, read.ids.size()))
        read.segments.push_back(label(one, w));
    }
    return read;
  }
};

}  // namespace

std::vector<IdWindow> read_token_ids(const std::string& path, std::int64_t vocab) {
  const MappedFile file(path);
  const Json document = Json::parse(file.text(), nullptr, false);
  if (document.is_discarded()) fail_input(kWhat, path, "not JSON", kWanted, "something else");
  if (!document.is_array() || document.empty())
    fail_input(kWhat, path, "no windows", kWanted, document.type_name());
  const Reader reader{path, vocab};
  std::vector<IdWindow> windows;
  for (std::size_t w = 0; w < document.size(); ++w) {
    windows.push_back(reader.window(document[w], w));
    const std::size_t length = windows[w].ids.size();
    if (document[w].is_array() && length != windows[0].ids.size())
      fail_input(kWhat, path, fmt::format("window {}", w),
                 fmt::format("{} ids as in window 0", windows[0].ids.size()), std::to_string(length));
  }
  return windows;
}

bool has_masks(const std::vector<IdWindow>& windows) {
  return std::any_of(windows.begin(), windows.end(),
                     [](const IdWindow& w) { return !w.score.empty() || !w.segments.empty(); });
}

std::vector<EvalWindow> windows_of_ids(const std::vector<IdWindow>& windows, const Protocol& protocol) {
  std::vector<EvalWindow> cut;
  for (const IdWindow& given : windows) {
    EvalWindow window = windows_of_ids(std::vector<std::vector<std::int32_t>>{given.ids}, protocol)[0];
    if (!given.score.empty()) {
      window.targets.assign(given.ids.size(), -1);
      for (std::size_t t = 1; t < given.ids.size(); ++t)
        if (given.score[t] == 1) window.targets[t - 1] = given.ids[t];
      window.weight = static_cast<double>(window.scored());
    }
    cut.push_back(std::move(window));
  }
  return cut;
}

Segments segments_of(const std::vector<IdWindow>& windows, const std::vector<EvalWindow>& cut) {
  Segments segments;
  if (std::all_of(windows.begin(), windows.end(), [](const IdWindow& w) { return w.segments.empty(); }))
    return segments;
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::size_t w = 0; w < cut.size(); ++w) {
    auto& labels = segments.of_token.emplace_back();
    for (std::size_t row = 0; row < cut[w].targets.size(); ++row) {
      if (cut[w].targets[row] < 0) continue;
      const std::string name = windows[w].segments.empty() ? std::string() : windows[w].segments[row + 1];
      const auto [at, is_new] = known.emplace(name, static_cast<std::uint32_t>(segments.names.size()));
      if (is_new) segments.names.push_back(name);
      labels.push_back(at->second);
    }
  }
  return segments;
}

}  // namespace quantmap
