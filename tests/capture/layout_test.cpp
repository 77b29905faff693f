// Names, selections and chunks of a capture file.
#include "capture/layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "capture/config_json.hpp"
#include "checkpoint/expect_error.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

ModelConfig tiny() { return parse_config(testing::tiny_config({}), "tiny"); }

std::vector<std::string> names_of(const std::vector<CaptureSite>& sites) {
  std::vector<std::string> names;
  for (const CaptureSite& site : sites) names.insert(names.end(), site.names.begin(), site.names.end());
  return names;
}

std::vector<std::string> selected(const std::vector<std::string>& patterns, std::vector<int> layers = {}) {
  CaptureSelection selection;
  for (const std::string& pattern : patterns) selection.patterns.push_back(site_pattern(pattern));
  selection.layers = std::move(layers);
  return names_of(capture_sites(tiny(), selection));
}

// Inputs and outputs of 7 Linears, key, value and the stream in each of two layers; embedding, final norm and
// the head's input; the head's output only where it is named.
TEST(CaptureLayout, EverySiteOfTheContractOnce) {
  const std::vector<std::string> names = selected({});
  EXPECT_EQ(names.size(), 2U * (14 + 3) + 3);
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
  EXPECT_THAT(names, Contains("model.layers.1.mlp.up_proj input"));
  EXPECT_THAT(names, Contains("lm_head input"));
  EXPECT_THAT(names, Not(Contains("lm_head output")));
}

TEST(CaptureLayout, AQueryTakesWhatItMatches) {
  EXPECT_THAT(selected({"lm_head"}), ElementsAre("lm_head input", "lm_head output"));
  EXPECT_THAT(selected({"*"}), Not(Contains("lm_head output")));
  EXPECT_THAT(selected({"/layers\\.1\\..*down_proj input$/"}),
              ElementsAre("model.layers.1.mlp.down_proj input"));
  EXPECT_THAT(selected({"down_proj input"}, {1}), ElementsAre("model.layers.1.mlp.down_proj input"));
  EXPECT_THAT(selected({" key$", " value$"}, {0}),
              ElementsAre("model.layers.0.self_attn key", "model.layers.0.self_attn value"));
  // Shared inputs keep only the names that were asked for.
  EXPECT_THAT(selected({"layers.0.self_attn.v_proj input"}),
              ElementsAre("model.layers.0.self_attn.v_proj input"));
  EXPECT_THAT(selected({"nothing"}), ElementsAre());
}

TEST(CaptureLayout, SitesThatAreOneTensorAreOneDataset) {
  for (const CaptureSite& site : capture_sites(tiny(), {})) {
    std::size_t names = 1;
    if (site.site == Site::linear_input && site.linear == LinearId::q) names = 3;
    if (site.site == Site::linear_input && site.linear == LinearId::gate) names = 2;
    if (site.site == Site::final_norm) names = 2;
    EXPECT_EQ(site.names.size(), names) << site.names[0];
  }
}

TEST(CaptureLayout, TensorsFollowLayersAndPatterns) {
  CaptureSelection selection;
  selection.layers = {1};
  for (const std::string& name : capture_tensors(tiny(), selection))
    EXPECT_TRUE(name.starts_with("model.layers.1.")) << name;
  selection.layers.clear();
  selection.patterns.push_back(site_pattern("down_proj"));
  EXPECT_THAT(capture_tensors(tiny(), selection),
              ElementsAre("model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight"));
  selection.weights = false;
  EXPECT_TRUE(capture_tensors(tiny(), selection).empty());
}

TEST(CaptureLayout, LayersAreNumbersAndRanges) {
  EXPECT_THAT(parse_layers("0,3,5-7", 8), ElementsAre(0, 3, 5, 6, 7));
  EXPECT_THAT(parse_layers("2-2,1,2", 8), ElementsAre(1, 2));
  for (const char* bad : {"", "8", "5-3", "a", "1,,2", "-1", "1-", "0x1", "99999999999999999999"})
    EXPECT_THROW(parse_layers(bad, 8), Error) << bad;
}

TEST(CaptureLayout, ADatasetIsNamedAsTheContractSays) {
  EXPECT_EQ(site_dataset("model.layers.0.mlp.down_proj input"),
            "/activations/model.layers.0.mlp.down_proj/input");
  EXPECT_EQ(site_dataset("model.layers.3.self_attn key"), "/kv/model.layers.3.self_attn/key");
  EXPECT_EQ(tensor_dataset("model.norm.weight"), "/weights/model.norm.weight");
  for (const char* bad : {"model.norm", "a/b input", " input", "model.norm both"})
    EXPECT_THROW(site_dataset(bad), Error) << bad;
}

// What lets windows be written pass by pass: no chunk holds rows of two of them.
TEST(CaptureLayout, ChunksBeginWhereWindowsDo) {
  for (const std::int64_t group :
       {1, 2, 3, 29, 64, 100, 127, 128, 250, 256, 500, 509, 1009, 2048, 4096, 8191, 10'000})
    for (const std::int64_t cols : {1, 64, 576, 4096, 151'936})
      for (const std::int64_t most : {16, 128}) {
        const ChunkShape chunk = chunk_shape(group, cols, most, false);
        EXPECT_EQ(group % chunk.rows, 0) << group;
        EXPECT_TRUE(chunk.cols >= 1 && chunk.cols <= cols);
        EXPECT_LE(chunk.rows * chunk.cols, std::max<std::int64_t>(128 * 1024, chunk.rows))
            << group << " " << cols;
        EXPECT_EQ(chunk_shape(group, cols, most, true).cols, cols);
      }
  EXPECT_EQ(chunk_shape(2048, 576, 128, false).rows, 128);   // a tile of the forward pass
  EXPECT_EQ(chunk_shape(1009, 576, 128, false).rows, 1009);  // a prime: the window
}

// Every field: one that is not written comes back as its default.
TEST(CaptureLayout, AConfigurationComesBackAsItWas) {
  ModelConfig c = tiny();
  c.rope = {RopeKind::yarn, 12345.5, 4.0, 1.5, 3.5, 4096, 31, 2, 1.1, false, {1.0F, 0.3F}};
  c.window = {0, 17};
  c.q_bias = c.k_bias = c.v_bias = c.o_bias = c.mlp_bias = c.tied_embeddings = true;
  c.rms_norm_eps = 1.25e-5;
  const std::string text = write_config_json(c);
  const ModelConfig back = parse_config_json(text, "f.h5");
  EXPECT_EQ(write_config_json(back), text);
  EXPECT_EQ(back.rope.frequency_factors, c.rope.frequency_factors);
  EXPECT_EQ(back.window, c.window);
  EXPECT_EQ(back.rms_norm_eps, c.rms_norm_eps);
  EXPECT_EQ(back.head_dim, c.head_dim);
  for (const char* bad : {"", "{}", "[1]", "{\"model_type\":3}"})
    EXPECT_THROW(parse_config_json(bad, "f.h5"), Error);
  std::string negative = text;
  negative.replace(negative.find("\"layers\":2"), 10, "\"layers\":0");
  EXPECT_THROW(parse_config_json(negative, "f.h5"), Error);
}

}  // namespace
}  // namespace quantmap
