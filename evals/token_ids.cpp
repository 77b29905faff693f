#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "evals/protocol.hpp"

namespace quantmap {

std::vector<std::vector<std::int32_t>> read_token_ids(const std::string& path, std::int64_t vocab) {
  const MappedFile file(path);
  const auto document = nlohmann::json::parse(file.text(), nullptr, false);
  const std::string wanted = "a JSON array of arrays of token ids";
  if (document.is_discarded()) fail_input("token ids", path, "not JSON", wanted, "something else");
  if (!document.is_array() || document.empty())
    fail_input("token ids", path, "no windows", wanted, document.type_name());
  std::vector<std::vector<std::int32_t>> windows;
  for (std::size_t w = 0; w < document.size(); ++w) {
    const auto& window = document[w];
    if (!window.is_array())
      fail_input("token ids", path, fmt::format("window {}", w), wanted, window.type_name());
    auto& ids = windows.emplace_back();
    for (std::size_t t = 0; t < window.size(); ++t) {
      const std::string place = fmt::format("window {}, position {}", w, t);
      // Only numbers are shown as they are: anything else may be of any length.
      if (!window[t].is_number_integer())
        fail_input("token ids", path, place, "an integer",
                   window[t].is_number() ? window[t].dump() : window[t].type_name());
      const bool fits = window[t].is_number_unsigned()
                            ? window[t].get<std::uint64_t>() < static_cast<std::uint64_t>(vocab)
                            : false;
      if (!fits)
        fail_input("token ids", path, place, fmt::format("an id from 0 to {}", vocab - 1), window[t].dump());
      ids.push_back(window[t].get<std::int32_t>());
    }
    if (ids.size() < 2)
      fail_input("token ids", path, fmt::format("window {}", w), "2 ids or more", std::to_string(ids.size()));
    if (ids.size() != windows[0].size())
      fail_input("token ids", path, fmt::format("window {}", w),
                 fmt::format("{} ids as in window 0", windows[0].size()), std::to_string(ids.size()));
  }
  return windows;
}

}  // namespace quantmap
