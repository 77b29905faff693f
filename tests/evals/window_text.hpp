// Windows written as text, so that a table of cases reads like the rule: `B 1 2>3 3>4` is BOS, 1, then 2
// scored on 3, and so on.
#pragma once

#include <string>

#include "evals/protocol.hpp"

namespace quantmap::testing {

inline constexpr std::int32_t kBos = 900, kEos = 901;

inline std::string id_text(std::int32_t id) {
  return id == kBos ? "B" : id == kEos ? "E" : std::to_string(id);
}
inline std::string window_text(const EvalWindow& window) {
  std::string text;
  for (std::size_t i = 0; i < window.ids.size(); ++i) {
    if (i > 0) text += ' ';
    text += id_text(window.ids[i]);
    if (window.targets[i] >= 0) text += '>' + id_text(window.targets[i]);
  }
  return text;
}
inline std::vector<std::string> window_texts(const std::vector<EvalWindow>& windows) {
  std::vector<std::string> texts;
  for (const EvalWindow& window : windows) texts.push_back(window_text(window));
  return texts;
}
// Options by their names; the rest left out.
struct Options {
  std::string protocol = {};
  std::optional<std::int64_t> ctx = {}, stride = {};
  std::optional<std::string> score = {}, bos = {};
};
inline Protocol resolve_protocol(const Options& o, std::int64_t model_limit) {
  return quantmap::resolve_protocol(ProtocolOptions{o.protocol, o.ctx, o.stride, o.score, o.bos},
                                    model_limit);
}
// The ids 0, 1, 2, …
inline std::vector<std::int32_t> counting(std::int32_t count, std::int32_t first = 0) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back(first + i);
  return ids;
}

}  // namespace quantmap::testing
