#include "checkpoint/hf_directory.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBadIndex = "bad safetensors index";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Without an exception where the path may not be looked at: opening it will say so.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Tensor name -> shard file name.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const MappedFile file(path);
  const nlohmann::json index = parse_json(file.text(), kBadIndex, file.name());
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty())
    fail_input(kBadIndex, file.name(), "key weight_map", "an object of tensor names and files",
               index.is_object() && map != index.end() ? describe(*map) : "no such key");
  std::map<std::string, std::string> out;
  for (const auto& [tensor, shard] : map->items()) {
    // A plain name: the index must not lead out of the folder.
    const bool plain = shard.is_string() && shard.get<std::string>().ends_with(".safetensors") &&
                       shard.get<std::string>().find_first_of("/\\") == std::string::npos &&
                       is_plain_text(shard.get<std::string>());
    if (!plain)
      fail_input(kBadIndex, file.name(), "tensor " + quantmap::quoted(tensor),
                 "a .safetensors file of this folder", describe(shard));
    out.emplace(tensor, shard.get<std::string>());
  }
  return out;
}

HfDirectory open_shards(const fs::path& directory, bool list_only) {
  const fs::path index_path = directory / kIndex;
  const std::map<std::string, std::string> weight_map = read_index(index_path);
  std::map<std::string, std::size_t> shards;
  for (const auto& [tensor, shard] : weight_map) shards.emplace(shard, 0);
  for (const auto& [shard, position] : shards)
    if (!is_there(directory / shard))
      fail_input("missing shard", (directory / shard).string(), fmt::format("named by {}", kIndex),
                 fmt::format("{} files", shards.size()), "no such file");

  HfDirectory out;
  std::set<std::string> unlisted;
  for (auto& [shard, position] : shards) {
    position = out.shards.size();
    out.shards.push_back(SafetensorsFile::open(directory / shard, list_only));
    for (const SafetensorsEntry& entry : out.shards.back().tensors()) {
      const auto listed = weight_map.find(entry.name);
      if (listed != weight_map.end() && listed->second == shard)
        out.tensors.push_back({position, &entry});
      else
        unlisted.insert(fmt::format("{} of {}", entry.name, shard));
    }
  }
  for (const auto& [tensor, shard] : weight_map) {
    if (out.shards[shards.at(shard)].find(tensor)) continue;
    if (list_only)
      out.warnings.push_back(fmt::format("the index places tensor {} in {}, and it is not there",
                                         quantmap::quoted(tensor), shard));
    else
      fail_input(kBadIndex, index_path.string(), "tensor " + quantmap::quoted(tensor), "it in " + shard,
                 "no such tensor there");
  }
  if (!unlisted.empty())
    out.warnings.push_back(
        fmt::format("{} tensors are not read, for the index does not place them there: {}{}", unlisted.size(),
                    quantmap::quoted(*unlisted.begin()), unlisted.size() > 1 ? ", …" : ""));
  return out;
}

}  // namespace

HfDirectory open_hf_directory(const fs::path& directory, bool list_only) {
  if (!is_there(directory / kSingle)) {
    if (is_there(directory / kIndex)) return open_shards(directory, list_only);
    fail_input("cannot open model", directory.string(), "no tensor file",
               fmt::format("{} or {}", kSingle, kIndex), "neither");
  }
  HfDirectory out;
  out.shards.push_back(SafetensorsFile::open(directory / kSingle, list_only));
  for (const SafetensorsEntry& entry : out.shards[0].tensors()) out.tensors.push_back({0, &entry});
  return out;
}

}  // namespace quantmap
