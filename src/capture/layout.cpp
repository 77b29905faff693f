#include "capture/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "checkpoint/expected_tensors.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kLayers = "model.layers.";

bool takes_name(const CaptureSelection& selection, const std::string& name) {
  return selection.patterns.empty() ||
         std::any_of(selection.patterns.begin(), selection.patterns.end(),
                     [&](const ModulePattern& pattern) { return pattern.matches(name); });
}

std::int64_t parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail_usage("--layers", quoted(text) + " is no layer (0,3,5-7 takes layers 0, 3, 5, 6 and 7)");
  return value;
}

}  // namespace

bool CaptureSelection::takes_layer(int layer) const {
  return layers.empty() || std::find(layers.begin(), layers.end(), layer) != layers.end();
}

bool CaptureSelection::takes_site(const std::string& module, const std::string& side, int layer) const {
  if (!activations || !takes_layer(layer)) return false;
  const std::string name = fmt::format("{} {}", module, side);
  if (module == kHead && side == "output")
    return std::any_of(patterns.begin(), patterns.end(), [&](const ModulePattern& pattern) {
      return !pattern.matches_all() && pattern.matches(name);
    });
  return takes_name(*this, name);
}

bool CaptureSelection::takes_tensor(const std::string& name) const {
  return weights && takes_layer(layer_of(name)) && takes_name(*this, name);
}

ModulePattern site_pattern(std::string_view text) {
  if (text == "*" || (text.size() > 1 && text.front() == '/' && text.back() == '/'))
    return ModulePattern(text);
  std::string slashed = "/";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') slashed += '\\';
    slashed += text[i];
    if (text[i] == '\\' && i + 1 < text.size()) slashed += text[++i];
  }
  return ModulePattern(slashed + "/");
}

std::vector<int> parse_layers(std::string_view text, int layers) {
  std::vector<int> taken;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t dash = part.find('-');
    const std::int64_t first = parse_number(part.substr(0, dash));
    const std::int64_t last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    if (last < first) fail_usage("--layers", quoted(part) + " ends before it begins");
    if (last >= layers)
      fail_usage("--layers",
                 fmt::format("there is no layer {}: the model has layers 0 to {}", last, layers - 1));
    for (std::int64_t layer = first; layer <= last; ++layer) taken.push_back(static_cast<int>(layer));
  }
  std::sort(taken.begin(), taken.end());
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  return taken;
}

int layer_of(std::string_view name) {
  if (!name.starts_with(kLayers)) return -1;
  int layer = -1;
  std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

std::vector<CaptureSite> capture_sites(const ModelConfig& c, const CaptureSelection& selection) {
  std::vector<CaptureSite> sites;
  const auto add = [&](Site site, LinearId linear, int layer, const std::vector<std::string>& modules,
                       const std::string& side, std::int64_t width, std::int64_t heads = 0) {
    CaptureSite made{site, linear, layer, {}, width, heads};
    for (const std::string& module : modules)
      if (selection.takes_site(module, side, layer)) made.names.push_back(fmt::format("{} {}", module, side));
    if (!made.names.empty()) sites.push_back(std::move(made));
  };
  add(Site::embedding, LinearId::q, -1, {kEmbedding}, "output", c.hidden_size);
  for (int layer = 0; layer < c.layers; ++layer) {
    const auto names = [&](std::initializer_list<LinearId> ids) {
      std::vector<std::string> modules;
      for (const LinearId id : ids) modules.push_back(linear_name(layer, id));
      return modules;
    };
    const auto input = [&](std::initializer_list<LinearId> ids) {
      add(Site::linear_input, *ids.begin(), layer, names(ids), "input", linear_shape(c, *ids.begin()).in);
    };
    const auto output = [&](LinearId id) {
      add(Site::linear_output, id, layer, {linear_name(layer, id)}, "output", linear_shape(c, id).out);
    };
    input({LinearId::q, LinearId::k, LinearId::v});
    for (const LinearId id : {LinearId::q, LinearId::k, LinearId::v}) output(id);
    add(Site::key, LinearId::k, layer, {attention_name(layer)}, "key", kv_width(c), c.kv_heads);
    add(Site::value, LinearId::v, layer, {attention_name(layer)}, "value", kv_width(c), c.kv_heads);
    input({LinearId::o});
    output(LinearId::o);
    input({LinearId::gate, LinearId::up});
    output(LinearId::gate);
    output(LinearId::up);
    input({LinearId::down});
    output(LinearId::down);
    add(Site::layer_output, LinearId::q, layer, {layer_name(layer)}, "output", c.hidden_size);
  }
  // One tensor with two names, of different sides.
  CaptureSite norm{Site::final_norm, LinearId::q, -1, {}, c.hidden_size, 0};
  if (selection.takes_site(kFinalNorm, "output", -1))
    norm.names.push_back(fmt::format("{} output", kFinalNorm));
  if (selection.takes_site(kHead, "input", -1)) norm.names.push_back(fmt::format("{} input", kHead));
  if (!norm.names.empty()) sites.push_back(std::move(norm));
  add(Site::linear_output, LinearId::q, -1, {kHead}, "output", c.vocab_size);
  return sites;
}

std::vector<std::string> capture_tensors(const ModelConfig& config, const CaptureSelection& selection) {
  std::vector<std::string> names;
  for (const ExpectedTensor& tensor : expected_tensors(config))
    if (selection.takes_tensor(tensor.name)) names.push_back(tensor.name);
  return names;
}

std::string site_dataset(std::string_view site) {
  const std::size_t space = site.find(' ');
  const std::string_view module = site.substr(0, space);
  const std::string_view side = space == std::string_view::npos ? "" : site.substr(space + 1);
  if (module.empty() || module.find('/') != std::string_view::npos)
    fail_usage("site", quoted(site) + " has no module path");
  if (side == "input" || side == "output") return fmt::format("/activations/{}/{}", module, side);
  if (side == "key" || side == "value") return fmt::format("/kv/{}/{}", module, side);
  fail_usage("site", quoted(site) + " is none (a module path, then input, output, key or value)");
}

std::string tensor_dataset(std::string_view tensor) { return fmt::format("/weights/{}", tensor); }

ChunkShape chunk_shape(std::int64_t group, std::int64_t cols, std::int64_t most_rows, bool whole_rows) {
  constexpr std::int64_t kFew = 16, kWholeGroup = 4096, kValues = 128 * 1024;
  std::int64_t rows = std::min(group, most_rows);
  while (group % rows != 0) --rows;
  // A length without divisors: one chunk a window, cut along its columns, rather than chunks of a few rows.
  if (rows < std::min(kFew, most_rows) && group <= kWholeGroup) rows = group;
  if (whole_rows) return {rows, cols};
  return {rows, std::clamp<std::int64_t>(kValues / rows, 1, cols)};
}

}  // namespace quantmap
