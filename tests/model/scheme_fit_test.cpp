// GGUF types on rows that are not whole blocks: SmolLM2-135M's shapes, where a Q4_K file holds few Q4_K
// tensors.
#include "model/scheme_fit.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "model/sizes.hpp"

namespace quantmap {
namespace {

ModelConfig smol() {
  ModelConfig config;
  config.hidden_size = 576;
  config.intermediate_size = 1536;
  config.layers = 30;
  config.heads = 9;
  config.kv_heads = 3;
  config.head_dim = 64;
  config.vocab_size = 49152;
  config.tied_embeddings = true;
  return config;
}

TEST(SchemeFit, WeightsFallBackAndAreNamed) {
  const struct {
    const char* scheme;
    std::vector<std::string> notes;
  } cases[] = {
      {"Q8_0", {}},
      {"Q4_0", {}},
      {"W4A16", {}},
      {"Q4_K",
       {"180 weights with rows of 576 values, no whole blocks of 256, are kept in Q5_0 instead of q4_k"}},
      {"w=q6_k,include=lm_head",
       {"181 weights with rows of 576 values, no whole blocks of 256, are kept in Q8_0 instead of q6_k"}},
      {"Q1_0",
       {"180 weights with rows of 576 values, no whole blocks of 128, are kept in F16 instead of q1_0"}},
  };
  for (const auto& c : cases) {
    const Scheme scheme = Scheme::parse(c.scheme);
    EXPECT_EQ(fallback_notes(scheme, smol()), c.notes) << c.scheme;
    require_whole_blocks(scheme, smol());
  }
}

// What is kept in Q5_0 counts as Q5_0: 576 * 576 and 576 * 1536 values at 5.5 bits, down_proj's at 4.5.
TEST(SchemeFit, SizesCountTheTypeThatIsKept) {
  const Scheme scheme = Scheme::parse("Q4_K");
  const double whole = 576.0 * 1536, rest = 2 * 576.0 * 576 + 2 * 576.0 * 192 + 2 * 576.0 * 1536;
  EXPECT_EQ(scheme_size(smol(), &scheme).bpw_quantized, (4.5 * whole + 5.5 * rest) / (whole + rest));
}

TEST(SchemeFit, ActivationsAndCachesAreRefusedByName) {
  const struct {
    const char* scheme;
    const char* part;  // null: fits
  } cases[] = {
      {"w=q8_0,a=q8_0,kv=q8_0", nullptr},
      {"kv=q4_0", nullptr},
      {"kv=ggml_nvfp4", nullptr},
      {"a=q4_k",
       "scheme a=q4_k: input of model.layers.0.self_attn.q_proj in q4_k: rows of 576 values are no whole "
       "blocks of "
       "256 (a weight would fall back to Q5_0)"},
      {"kv=q4_k", "keys of model.layers.0.self_attn in q4_k: rows of 64 values are no whole blocks of 256"},
      {"v=q1_0", "values of model.layers.0.self_attn in q1_0: rows of 64 values"},
  };
  for (const auto& c : cases) {
    try {
      require_whole_blocks(Scheme::parse(c.scheme), smol());
      EXPECT_EQ(c.part, nullptr) << c.scheme;
    } catch (const Error& error) {
      ASSERT_NE(c.part, nullptr) << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find(c.part), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace quantmap
