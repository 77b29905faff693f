// Names in a capture file (docs/capture.md): which sites and tensors a selection takes, which dataset holds
// each, and how its chunks are cut. A site is a module path and a side, `model.layers.0.mlp.down_proj input`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.hpp"
#include "model/hooks.hpp"
#include "scheme/pattern.hpp"

namespace quantmap {

inline constexpr std::int64_t kCaptureSchema = 1;

struct CaptureSelection {
  std::vector<ModulePattern> patterns;  // any of them; none: everything but the head's output
  std::vector<int> layers;              // only what belongs to these layers; none: everything
  bool weights = true, activations = true;

  // The head's output is as wide as the vocabulary: only where a pattern (other than *) names it.
  bool takes_site(const std::string& module, const std::string& side, int layer) const;
  bool takes_tensor(const std::string& name) const;

 private:
  bool takes_layer(int layer) const;
};
// A pattern of --sites: /REGEX/, *, or a regular expression without its slashes. Throws Error (usage).
ModulePattern site_pattern(std::string_view text);
// `0,3,5-7`, within the model. Throws Error (usage).
std::vector<int> parse_layers(std::string_view text, int layers);
// The layer that a tensor or module belongs to, -1: none.
int layer_of(std::string_view name);

// A tensor of the forward pass that is stored once, and every name it has: q, k and v share their input, gate
// and up another, and the head's input is the final norm's output.
struct CaptureSite {
  Site site = Site::layer_output;
  LinearId linear = LinearId::q;
  int layer = -1;                  // -1 with linear_output: the head
  std::vector<std::string> names;  // `model.layers.0.self_attn.q_proj input`, …
  std::int64_t width = 0;
  std::int64_t heads = 0;  // of keys and values: [tokens][heads][width / heads]; 0: [tokens][width]
};
std::vector<CaptureSite> capture_sites(const ModelConfig& config, const CaptureSelection& selection);
// In the order of a forward pass.
std::vector<std::string> capture_tensors(const ModelConfig& config, const CaptureSelection& selection);

// `/activations/model.layers.0.mlp.down_proj/input`, `/kv/model.layers.0.self_attn/key`: a module is one
// group, its path with dots as everywhere else. Throws Error (usage) for what is no site.
std::string site_dataset(std::string_view site);
std::string tensor_dataset(std::string_view tensor);  // `/weights/model.norm.weight`

// A chunk of a [rows][cols] dataset in which `group` rows (a window's) begin where a chunk does, so that no
// chunk holds rows of two windows; about half a MiB, at most `most_rows` rows where that can be.
struct ChunkShape {
  std::int64_t rows = 0, cols = 0;
};
ChunkShape chunk_shape(std::int64_t group, std::int64_t cols, std::int64_t most_rows, bool whole_rows);

}  // namespace quantmap
