// Captured hidden states, keys and values of every supported family against an independent implementation.
#include <cmath>

#include "capture/support.hpp"
#include "formats/bf16.hpp"
#include "model/golden.hpp"

namespace quantmap {
namespace {

using testing::expect_close;
using testing::fresh_dir;
using testing::Golden;
using testing::read_golden;
using testing::shared_dir;

class TinyModelCapture : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyModelCapture, EqualsTransformersInFp32) {
  const auto dir = shared_dir() / "data/tiny-models" / GetParam();
  QUANTMAP_NEEDS(dir);
  const auto golden = read_golden(dir / "expected.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(dir);
  const ModelConfig& c = checkpoint.config();
  const Golden& input = golden.at("input_ids");
  const std::int64_t batch = input.shape.at(0), length = input.shape.at(1);
  testing::CaptureSetup setup;
  setup.windows = batch;
  setup.ctx = length;
  const auto path = fresh_dir("tiny_" + GetParam()) / "f.h5";
  CaptureJob job = testing::capture_job(checkpoint, path, setup);
  job.contents.tokens.assign(input.values.begin(), input.values.end());
  // As in tests/model/tiny_models_test.cpp: the expected values' frequencies were rounded to BF16.
  if (GetParam() == "qwen3-bf16") {
    std::vector<float> frequencies = inverse_frequencies(c.rope, c.head_dim);
    for (float& frequency : frequencies) frequency = round_to_bf16(frequency);
    job.rope = rope_table(c.rope, frequencies, length);
  }
  run_capture(job);
  const Capture capture = Capture::open(path);
  const testing::Values all = testing::read_all(capture);
  const auto layer = [](std::int64_t i) { return "model.layers." + std::to_string(i); };
  std::size_t compared = 0;
  for (const auto& [name, want] : golden) {
    if (name == "input_ids" || name == "logits") continue;
    const std::int64_t number = std::stoll(name.substr(name.find('.') + 1));
    ++compared;
    if (name.starts_with("hidden.")) {
      const std::string site = number == 0          ? "model.embed_tokens output"
                               : number == c.layers ? "model.norm output"
                                                    : layer(number - 1) + " output";
      expect_close(all.at(site), want.values, site);
      continue;
    }
    // Expected: [batch][head][position][head_dim], of a sliding layer only the last positions.
    const std::string site = layer(number) + ".self_attn " + name.substr(0, name.find('.'));
    const auto& rows = all.at(site);
    const std::int64_t kept = want.shape.at(2);
    std::vector<float> got;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t head = 0; head < c.kv_heads; ++head)
        for (std::int64_t t = length - kept; t < length; ++t)
          for (std::int64_t d = 0; d < c.head_dim; ++d)
            got.push_back(
                rows[static_cast<std::size_t>(((b * length + t) * c.kv_heads + head) * c.head_dim + d)]);
    expect_close(got, want.values, site);
  }
  EXPECT_EQ(compared, static_cast<std::size_t>(1 + 3 * c.layers));
  // The configuration that the file brings is the model's own.
  EXPECT_EQ(capture.config().window, c.window);
  EXPECT_EQ(capture.config().qk_norm, c.qk_norm);
  EXPECT_EQ(capture.config().rope.kind, c.rope.kind);
  EXPECT_EQ(capture.config().rope.attention_factor, c.rope.attention_factor);
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModelCapture,
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
