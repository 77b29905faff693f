#include "map/name_of_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace quantmap {

std::string short_format(const std::string& format) {
  std::string name = format.starts_with("fp8") ? "FP8" : format.starts_with("mxfp8") ? "MXFP8" : format;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

std::string name_of(const QuantGroup& group) {
  const int weights = group.weights ? group.weights->bits : 16;
  const int activations = group.activations ? group.activations->bits : 16;
  const std::string bits = fmt::format("W{}A{}", weights, activations);
  const std::string format = group.weights       ? group.weights->format
                             : group.activations ? group.activations->format
                                                 : "";
  const bool plain = format.empty() || format.starts_with("int");
  std::string name = plain ? bits : fmt::format("{} {}", short_format(format), bits);
  // Inputs of another kind than the weights: `W4A8` alone would hide that they are FP8.
  if (group.weights && group.activations) {
    const std::string inputs = short_format(group.activations->format),
                      own = short_format(group.weights->format);
    const bool both_integers = plain && group.activations->format.starts_with("int");
    if (inputs != own && !both_integers) name += fmt::format(" ({} activations)", inputs);
  }
  return name;
}

std::string name_of(const QuantConfig& config) {
  if (config.says_anything() && !config.known) return fmt::format("unknown ({})", config.method);
  std::vector<std::string> names;
  for (const QuantGroup& group : config.groups) {
    if (!group.weights && !group.activations) continue;
    const std::string name = name_of(group);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  if (names.size() == 1) text = names[0];
  if (names.size() > 1) {
    for (const std::string& name : names) text.append(text.empty() ? "mixed (" : ", ").append(name);
    text += ")";
  }
  if (!config.kv) return text.empty() ? (config.says_anything() ? "W16A16" : "BF16") : text;
  const std::string kv = short_format(config.kv->format);
  return text.empty() ? kv + " KV only" : fmt::format("{} + {} KV", text, kv);
}

}  // namespace quantmap
