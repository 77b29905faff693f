// The forward pass against an independent implementation (transformers, FP32), family by family and RoPE kind
// by RoPE kind: logits, hidden states, and keys and values as cached.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "core/parallel.hpp"
#include "formats/bf16.hpp"
#include "model/forward.hpp"
#include "model/golden.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using testing::expect_close;
using testing::Golden;
using testing::read_golden;
using testing::shared_dir;

class TinyModel : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyModel, EqualsTransformersInFp32) {
  const auto dir = shared_dir() / "data/tiny-models" / GetParam();
  QUANTMAP_NEEDS(dir);
  const auto golden = read_golden(dir / "expected.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(dir);
  const ModelConfig& c = checkpoint.config();
  const Golden& input = golden.at("input_ids");
  const std::int64_t batch = input.shape.at(0), length = input.shape.at(1);
  std::vector<std::vector<std::int32_t>> ids(static_cast<std::size_t>(batch));
  std::vector<PassWindow> windows;
  for (std::int64_t b = 0; b < batch; ++b) {
    auto& row = ids[static_cast<std::size_t>(b)];
    for (std::int64_t t = 0; t < length; ++t)
      row.push_back(static_cast<std::int32_t>(input.values[static_cast<std::size_t>(b * length + t)]));
    windows.push_back({b, row});
  }
  Walker walker;
  walker.compute = Compute::f32;
  Forward forward(checkpoint, {walker}, {batch * length, length});
  // The expected values of this one come from a model that was converted to BF16 as a whole, its buffer of
  // inverse frequencies included, and then widened. quantmap keeps them in FP32, as models do when they are
  // loaded (the reference results on SmolLM2 agree with that to 1e-8), so the comparison rounds them as that
  // reference did.
  if (GetParam() == "qwen3-bf16") {
    std::vector<float> frequencies = inverse_frequencies(c.rope, c.head_dim);
    for (float& frequency : frequencies) frequency = round_to_bf16(frequency);
    forward.set_rope(rope_table(c.rope, frequencies, length));
  }

  std::map<std::string, std::vector<float>> got;
  std::mutex mutex;
  forward.set_hook([&](const SiteView& v) {
    std::string name;
    bool heads = false;
    switch (v.site) {
      case Site::embedding:
        name = "hidden.0";
        break;
      case Site::layer_output:
        name = v.layer + 1 < c.layers ? "hidden." + std::to_string(v.layer + 1) : "";
        break;
      case Site::final_norm:
        name = "hidden." + std::to_string(c.layers);
        break;
      case Site::key:
        name = "key." + std::to_string(v.layer);
        heads = true;
        break;
      case Site::value:
        name = "value." + std::to_string(v.layer);
        heads = true;
        break;
      default:
        return;
    }
    if (name.empty()) return;
    const std::lock_guard lock(mutex);
    auto& to = got[name];
    to.resize(golden.at(name).values.size());
    // A sliding layer's cache holds the last positions only.
    const std::int64_t kept = heads ? golden.at(name).shape.at(2) : length;
    for (std::int64_t r = 0; r < v.rows; ++r)
      for (std::int64_t col = 0; col < v.cols; ++col) {
        const std::int64_t t = v.row_begin + r - (length - kept);
        if (t < 0) continue;
        // Hidden states are [batch][seq][width], keys and values [batch][head][seq][head_dim].
        const std::int64_t at =
            heads ? ((v.window * c.kv_heads + col / c.head_dim) * kept + t) * c.head_dim + col % c.head_dim
                  : (v.window * length + t) * v.width + v.col_begin + col;
        to[static_cast<std::size_t>(at)] = v.data[r * v.stride + col];
      }
  });
  forward.start(windows);
  for (int layer = 0; layer < c.layers; ++layer) forward.run_layer(layer);
  std::vector<float> logits(golden.at("logits").values.size());
  forward.run_head(
      [&](std::int64_t) {
        return RowRange{0, length};
      },
      [&](const HeadTile& tile) {
        std::copy(tile.logits, tile.logits + tile.rows * c.vocab_size,
                  logits.begin() + (tile.window * length + tile.row_begin) * c.vocab_size);
      });
  expect_close(logits, golden.at("logits").values, "logits");
  std::size_t compared = 1;
  for (const auto& [name, want] : golden) {
    if (name == "input_ids" || name == "logits") continue;
    ASSERT_TRUE(got.count(name)) << name;
    expect_close(got.at(name), want.values, name);
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<std::size_t>(2 + 3 * c.layers));
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         ::testing::Values("llama", "llama-bias-linear", "llama3-rope", "mistral-sliding",
                                           "qwen2", "qwen2-window", "qwen3-bf16", "qwen3-yarn-sharded"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& ch : name)
                             if (ch == '-') ch = '_';
                           return name;
                         });

}  // namespace
}  // namespace quantmap
