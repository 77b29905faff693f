// Sizes against hand-checked values (the arithmetic stands in the comments, b = bytes of a parameter in BF16
// is 2) and against parameters counted by transformers on the meta device
// (tests/golden/map/make_parameters.py).
#include "map/sizes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "map/configs.hpp"
#include "map/families.hpp"
#include "map/name_of_choices.hpp"
#include "model/sizes.hpp"

namespace quantmap {
namespace {

using testing::configs_dir;
using testing::read_config_file;
using Json = nlohmann::json;

constexpr double kGiB = 1024.0 * 1024 * 1024;

ModelMap map_of(const std::string& name) { return map_from_config(read_config_file(name), name); }

SizeRequest at(std::int64_t context, std::int64_t requests = 1) {
  SizeRequest request;
  request.context = context;
  request.requests = requests;
  return request;
}

SizeRow row_of(const ModelMap& map, const char* scheme, std::int64_t context = 8192,
               std::int64_t requests = 1) {
  return size_row(map, Scheme::parse(scheme), at(context, requests));
}

TEST(SizesOfQwen3_8B, AreThePublishedOnes) {
  QUANTMAP_NEEDS(configs_dir());
  const ModelMap map = map_of("models/Qwen--Qwen3-8B_config.json");
  // 36 layers of q and o 4096 × 4096, k and v 1024 × 4096, gate, up and down 4096 × 12288: 192,937,984 each,
  // and norms 2 × 4096 + 2 × 128; embeddings and head 151936 × 4096 = 622,329,856 each; the last norm 4096.
  constexpr std::int64_t kLinears = 36 * 192'937'984LL, kTable = 622'329'856, kNorms = 36 * 8448 + 4096;
  static_assert(kLinears + 2 * kTable + kNorms == 8'190'735'360);
  const SizeRow bf16 = row_of(map, "BF16");
  EXPECT_EQ(map.parameters(), 8'190'735'360);
  EXPECT_EQ(bf16.weights.parameters(), 8'190'735'360);
  EXPECT_EQ(bf16.weights.bytes(), 16'381'470'720);
  EXPECT_NEAR(static_cast<double>(bf16.weights.bytes()) / kGiB, 15.256, 0.0005);
  // Embeddings and head: 2 × 622,329,856 × 2 bytes.
  EXPECT_NEAR(
      static_cast<double>(bf16.weights.part(Part::embeddings).bits + bf16.weights.part(Part::lm_head).bits) /
          8 / kGiB,
      2.318, 0.0005);
  // NVFP4: 4 bits, a byte for each 16 and FP32 for each of 252 matrices.
  const SizeRow nvfp4 = row_of(map, "NVFP4");
  EXPECT_EQ(nvfp4.weights.bytes(), 2 * (2 * kTable + kNorms) + kLinears / 2 + kLinears / 16 + 252 * 4);
  EXPECT_NEAR(static_cast<double>(nvfp4.weights.bytes()) / kGiB, 5.958, 0.0005);
  EXPECT_NEAR(*nvfp4.weights.bpw_quantized(), 4.5, 2e-6);
  EXPECT_FALSE(bf16.weights.bpw_quantized().has_value());
  EXPECT_EQ(bf16.weights.bpw_model(), 16);
  // 2 × 36 layers × 8 heads × 128 × 2 bytes.
  EXPECT_EQ(bf16.kv.per_token, 144 * 1024);
  EXPECT_EQ(row_of(map, "BF16", 8192, 32).kv_bytes, 36 * kGiB);
  EXPECT_NEAR(row_of(map, "BF16", 8000, 32).kv_bytes / kGiB, 35.2, 0.05);
  EXPECT_EQ(row_of(map, "BF16+KVFP8", 8192, 32).kv_bytes, 18 * kGiB);
  // 91.7 GiB / 147,456 = 667,748; printed 668,000.
  const SizeRow fp8 = row_of(map, "BF16+KVFP8");
  EXPECT_NEAR(static_cast<double>(cached_tokens(bf16.kv, 8192, 91.7 * kGiB)), 668'000, 500);
  EXPECT_NEAR(static_cast<double>(cached_tokens(fp8.kv, 8192, 91.7 * kGiB)), 2 * 668'000, 1000);
  // Bytes read a token: 2.56 times fewer with the whole embedding table, 2.94 times with the one row that is
  // read.
  const auto ratio = [&](bool table) {
    return weight_bytes_a_token(map, bf16.weights, table) / weight_bytes_a_token(map, nvfp4.weights, table);
  };
  EXPECT_NEAR(ratio(true), 2.56, 0.005);
  EXPECT_NEAR(ratio(false), 2.94, 0.005);
}

TEST(SizesOfQwen3_8B, RooflineOnGB10IsAboveWhatWasPublished) {
  QUANTMAP_NEEDS(configs_dir());
  const ModelMap map = map_of("models/Qwen--Qwen3-8B_config.json");
  SizeRequest request = at(8000);
  request.machine = *find_machine("gb10");
  const SizeRow bf16 = size_row(map, Scheme::parse("BF16"), request);
  const SizeRow nvfp4 = size_row(map, Scheme::parse("NVFP4"), request);
  // (16,381,470,720 − 1,244,659,712 + 8,192 of one row + 8,000 × 147,456) / 273e9 = 59.77 ms.
  EXPECT_NEAR(*bf16.roofline->decode_tokens_per_s, 273e9 / (15'136'811'008.0 + 8192 + 8000 * 147'456.0),
              1e-6);
  // Linears 2 × 6,945,767,424 × 8,000, the head once, attention 36 × 4 × 4096 × 8000 × 8001 / 2, at 213
  // TFLOPS.
  const double attention = 36 * 4.0 * 4096 * (8000.0 * 8001 / 2), head = 2 * 622'329'856.0,
               linears = 2 * 6'945'767'424.0 * 8000;
  EXPECT_NEAR(*bf16.roofline->prefill_seconds, (linears + head + attention) / 213e12, 1e-9);
  EXPECT_NEAR(*nvfp4.roofline->prefill_seconds, linears / 427e12 + (head + attention) / 213e12, 1e-9);
  // Published: 13.6 → 36.1 tokens/s decoding one request, 1,735 → 871 ms of prefill for 8,000 tokens. A bound
  // has to lie beyond, and not by more than a factor of three.
  struct Case {
    double bound, published;
  };
  for (const Case& c :
       {Case{*bf16.roofline->decode_tokens_per_s, 13.6}, Case{*nvfp4.roofline->decode_tokens_per_s, 36.1},
        Case{1 / *bf16.roofline->prefill_seconds, 1 / 1.735},
        Case{1 / *nvfp4.roofline->prefill_seconds, 1 / 0.871}}) {
    EXPECT_GT(c.bound, c.published);
    EXPECT_LT(c.bound, 3 * c.published);
  }
}

TEST(Roofline, FollowsTheEngine) {
  QUANTMAP_NEEDS(configs_dir());
  const ModelMap map = map_of("models/Qwen--Qwen3-8B_config.json");
  SizeRequest request = at(8000);
  const auto prefill = [&](const char* gpu, const char* scheme) {
    request.machine = *find_machine(gpu);
    return size_row(map, Scheme::parse(scheme), request);
  };
  // NVFP4 on Hopper runs as W4A16: prefill as slow as in BF16, decoding as fast as its bytes allow.
  const SizeRow hopper = prefill("H100", "NVFP4"), plain = prefill("H100", "BF16");
  EXPECT_EQ(*hopper.roofline->prefill_seconds, *plain.roofline->prefill_seconds);
  EXPECT_GT(*hopper.roofline->decode_tokens_per_s, 2.4 * *plain.roofline->decode_tokens_per_s);
  ASSERT_EQ(hopper.roofline->assumptions.size(), 1U);
  EXPECT_NE(hopper.roofline->assumptions[0].find("W4A16"), std::string::npos);
  // On Blackwell it runs in FP4.
  const SizeRow blackwell = prefill("B200", "NVFP4");
  EXPECT_TRUE(blackwell.roofline->assumptions.empty());
  EXPECT_LT(*blackwell.roofline->prefill_seconds, *prefill("B200", "FP8_DYNAMIC").roofline->prefill_seconds);
}

TEST(Roofline, TurnsWhereTheProductsTakeAsLongAsTheReading) {
  QUANTMAP_NEEDS(configs_dir());
  const ModelMap map = map_of("models/Qwen--Qwen3-8B_config.json");
  SizeRequest request = at(1);
  request.machine = *find_machine("H100");
  const SizeRow row = size_row(map, Scheme::parse("BF16"), request);
  ASSERT_TRUE(row.roofline->compute_bound_requests.has_value());
  const std::int64_t turn = *row.roofline->compute_bound_requests;
  // About 989e12 / 3.35e12 = 295 requests for weights of two bytes and two operations each.
  EXPECT_NEAR(static_cast<double>(turn), 295, 15);
  request.requests = turn;
  EXPECT_TRUE(size_row(map, Scheme::parse("BF16"), request).roofline->decode_bound_by_products);
  request.requests = turn - 1;
  EXPECT_FALSE(size_row(map, Scheme::parse("BF16"), request).roofline->decode_bound_by_products);
  // A long context keeps decoding bound by bandwidth for any number of requests.
  request.context = 32768;
  EXPECT_FALSE(size_row(map, Scheme::parse("BF16"), request).roofline->compute_bound_requests.has_value());
}

struct FamilyCase {
  const char* file;
  double kv_per_token;  // at 100 tokens, in BF16: every layer still grows
};

TEST(SizesOfFamilies, ParametersAreTransformersAndCacheBytesByHand) {
  QUANTMAP_NEEDS(configs_dir());
  const Json golden = testing::read_json_file(testing::source_dir() / "tests/golden/map/parameters.json");
  const FamilyCase cases[] = {
      // 2 (k, v) × layers × KV heads × head_dim × 2 bytes
      {"models/Llama-3.2-1B_config.json", 2 * 16 * 8 * 64 * 2},
      {"models/Mistral-7B-v0.1_config.json", 2 * 32 * 8 * 128 * 2},
      {"models/Phi-3-mini-128k_config.json", 2 * 32 * 32 * 96 * 2},
      {"models/Qwen--Qwen3-0.6B_config.json", 114'688},  // B45: head_dim 128, not 1024 / 16
      {"models/Qwen--Qwen3-235B-A22B_config.json", 2 * 94 * 4 * 128 * 2},
      {"models/Qwen--Qwen3-30B-A3B_config.json", 2 * 48 * 4 * 128 * 2},
      {"models/Qwen--Qwen3-32B_config.json", 2 * 64 * 8 * 128 * 2},
      {"models/Qwen--Qwen3-8B_config.json", 2 * 36 * 8 * 128 * 2},
      {"models/Qwen2.5-0.5B_config.json", 2 * 24 * 2 * 64 * 2},
      {"models/Qwen2.5-7B_config.json", 2 * 28 * 4 * 128 * 2},
      {"models/SmolLM-1.7B_config.json", 2 * 24 * 32 * 64 * 2},
      {"models/gemma-2-9b_config.json", 2 * 42 * 8 * 256 * 2},
      {"models/gemma-3-27b-multimodal_config.json", 2 * 62 * 16 * 128 * 2},
      {"models/gemma-3-text_config.json", 2 * 26 * 1 * 256 * 2},
      {"models/meta-llama--Meta-Llama-3.1-70B_config.json", 2 * 80 * 8 * 128 * 2},
      {"models/meta-llama--Meta-Llama-3.1-8B_config.json", 2 * 32 * 8 * 128 * 2},
      {"models/mistralai--Mixtral-8x7B-v0.1_config.json", 2 * 32 * 8 * 128 * 2},
      {"quant/Llama-2-13B-chat-GPTQ_config.json", 2 * 40 * 40 * 128 * 2},
      {"quant/Qwen--Qwen3-32B-FP8_config.json", 2 * 64 * 8 * 128 * 2},
      // MLA: layers × (latent 512 + rotated 64) × 2 bytes
      {"quant/deepseek-ai--DeepSeek-V3_config.json", 61 * 576 * 2},
      {"quant/nvidia--DeepSeek-V3.1-NVFP4_config.json", 61 * 576 * 2},
      {"quant/moonshotai--Kimi-K2-Instruct_config.json", 61 * 576 * 2},
      {"quant/moonshotai--Kimi-K2.5_config.json", 61 * 576 * 2},
      {"quant/openai--gpt-oss-20b_config.json", 2 * 24 * 8 * 64 * 2},
  };
  for (const FamilyCase& c : cases) {
    SCOPED_TRACE(c.file);
    const ModelMap map = map_of(c.file);
    const Json& counted = golden["models"][c.file];
    EXPECT_EQ(map.parameters(), counted["parameters"].get<std::int64_t>());
    EXPECT_EQ(map.tied_embeddings, counted["tied"].get<bool>());
    const SizeRow row = row_of(map, "BF16", 100);
    EXPECT_EQ(row.weights.bytes(), 2 * counted["parameters"].get<std::int64_t>());
    EXPECT_EQ(row.kv.per_token, c.kv_per_token);
    EXPECT_EQ(row_of(map, "BF16+KVFP8", 100).kv.per_token, c.kv_per_token / 2);
  }
}

TEST(SizesOfFamilies, WindowsKeepNoMoreThanTheyAre) {
  QUANTMAP_NEEDS(configs_dir());
  struct Case {
    const char* file;
    std::int64_t context;
    double per_token, per_request;
  };
  const Case cases[] = {
      // gemma 2: 21 of 42 layers keep 4096; 8,192 bytes a layer and token (2 × 8 × 256 × 2).
      {"models/gemma-2-9b_config.json", 8192, 21 * 8192.0, 21 * 8192.0 * 8192 + 21 * 8192.0 * 4096},
      // gemma 3 27b: 52 of 62 layers keep 1024; 8,192 bytes (2 × 16 × 128 × 2).
      {"models/gemma-3-27b-multimodal_config.json", 4096, 10 * 8192.0,
       10 * 8192.0 * 4096 + 52 * 8192.0 * 1024},
      // gemma 3 1b: 22 of 26 layers keep 512; 1,024 bytes (2 × 1 × 256 × 2).
      {"models/gemma-3-text_config.json", 512, 4 * 1024.0, 26 * 1024.0 * 512},
      // gpt-oss: 12 of 24 layers keep 128; 2,048 bytes (2 × 8 × 64 × 2).
      {"quant/openai--gpt-oss-20b_config.json", 128, 12 * 2048.0, 24 * 2048.0 * 128},
      // Mistral 7B v0.1: all 32 layers keep 4096; 4,096 bytes (2 × 8 × 128 × 2). Past that nothing grows.
      {"models/Mistral-7B-v0.1_config.json", 8192, 0, 32 * 4096.0 * 4096},
      // Phi-3 mini: the window is longer than the model; Qwen2.5: use_sliding_window is false.
      {"models/Phi-3-mini-128k_config.json", 131072, 393'216, 393'216 * 131072.0},
      {"models/Qwen2.5-0.5B_config.json", 65536, 12'288, 12'288 * 65536.0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.file);
    const SizeRow row = row_of(map_of(c.file), "BF16", c.context);
    EXPECT_EQ(row.kv.per_token, c.per_token);
    EXPECT_EQ(row.kv.per_request, c.per_request);
  }
}

TEST(SizesOfFamilies, HeadDimIsNotDerivedWhereItIsSaid) {
  // S19, Mistral Nemo: hidden 5120, 32 heads, head_dim 128: 2 × 40 × 8 × 128 × 2 = 163,840, not 204,800.
  Json config = {{"model_type", "mistral"},
                 {"hidden_size", 5120},
                 {"intermediate_size", 14336},
                 {"num_attention_heads", 32},
                 {"num_hidden_layers", 40},
                 {"num_key_value_heads", 8},
                 {"head_dim", 128},
                 {"vocab_size", 131072},
                 {"sliding_window", nullptr},
                 {"max_position_embeddings", 128000}};
  const auto per_token = [&] { return row_of(map_from_config(config, "c"), "BF16").kv.per_token; };
  EXPECT_EQ(per_token(), 163'840);
  config["head_dim"] = nullptr;  // derive
  EXPECT_EQ(per_token(), 204'800);
}

// What a checkpoint's own configuration says, byte for byte: codes, scales, zero points, indices, padding;
// scales of inputs and of the cache are no weights. L: values of the quantized Linears, R: all other
// parameters (2 bytes each).
struct OwnCase {
  const char* file;
  const char* name;
  std::int64_t weight_bytes;
  double kv_per_token;
};

TEST(OwnSchemes, WeightBytesAreHandChecked) {
  QUANTMAP_NEEDS(configs_dir());
  // Qwen3-8B: L = 6,945,767,424, R = 1,244,967,936, 252 Linears, their rows together 36 × 38,912 = 1,400,832.
  constexpr std::int64_t kL = 6'945'767'424, kR2 = 2 * 1'244'967'936LL, kRows = 36 * 38'912;
  const OwnCase cases[] = {
      {"quant/gen-ct-Qwen3-8B-W4A16_config.json", "W4A16", kR2 + kL / 2 + kL / 128 * 2, 147'456},
      {"quant/gen-ct-Qwen3-8B-W8A8_int8_config.json", "W8A8", kR2 + kL + kRows * 2, 147'456},
      {"quant/gen-ct-Qwen3-8B-FP8_DYNAMIC_config.json", "FP8 W8A8", kR2 + kL + kRows * 2, 147'456},
      {"quant/gen-ct-Qwen3-8B-FP8_static_kvfp8_config.json", "FP8 W8A8 + FP8 KV", kR2 + kL + 252 * 2, 73'728},
      {"quant/gen-ct-Qwen3-8B-NVFP4_config.json", "NVFP4 W4A4", kR2 + kL / 2 + kL / 16 + 252 * 4, 147'456},
      // Nested: a byte for each block of 64, FP32 for each 256 of those, and their mean. Every matrix
      // divides.
      {"quant/gen-hf-Qwen3-8B-bnb-nf4_config.json", "NF4 W4A16",
       kR2 + kL / 2 + kL / 64 + kL / 16384 * 4 + 252 * 4, 147'456},
      // Llama 2 13B, GPTQ: L = 40 × (4 × 5120² + 3 × 5120 × 13824) = 12,687,769,600, R = 328,094,720; a group
      // of 128: 2 bytes of scale and half a byte of zero point; g_idx 4 bytes an input: 40 × 4 × (6 × 5120 +
      // 13824).
      {"quant/Llama-2-13B-chat-GPTQ_config.json", "W4A16",
       2 * 328'094'720LL + 12'687'769'600 / 2 + 12'687'769'600 / 128 * 5 / 2 + 40 * 4 * (6 * 5120 + 13824),
       819'200},
      // Qwen3-32B in blocks of 128 × 128: L = 64 × 487,587,840 = 31,205,621,760 (all sides divide), FP32 a
      // block.
      {"quant/Qwen--Qwen3-32B-FP8_config.json", "FP8 W8A8",
       2 * (32'762'123'264 - 31'205'621'760) + 31'205'621'760 + 31'205'621'760 / 16384 * 4, 262'144},
      {"quant/Qwen--Qwen3-32B-FP8-Static-PerTensor_config.json", "FP8 W8A8 + FP8 KV",
       2 * (32'762'123'264 - 31'205'621'760) + 31'205'621'760 + 448 * 4, 131'072},
      // DeepSeek V3: all Linears of 61 layers but the routers; kv_a_proj_with_mqa has 576 rows: 5 rows of
      // blocks. Per layer, attention: (1536·7168, 24576·1536, 576·7168, 32768·512, 7168·16384); 3 × 3 of
      // 18432·7168; 58 × 257 × 3 of 2048·7168. L = 669,065,609,216; blocks: 61 × (12·56 + 192·12 + 5·56 +
      // 256·4 + 56·128)
      // + 9 × 144·56 + 58·257·3 × 16·56 = 698,328 + 72,576 + 40,067,328 = 40,838,232.
      {"quant/deepseek-ai--DeepSeek-V3_config.json", "FP8 W8A8",
       2 * (671'026'419'200 - 669'065'609'216) + 669'065'609'216 + 40'838'232 * 4, 70'272},
      // Kimi K2.5: the experts alone, 60 × 384 × 3 × 2048·7168 = 1,014,686,023,680, in groups of 32 with BF16
      // scales.
      {"quant/moonshotai--Kimi-K2.5_config.json", "W4A16",
       2 * (1'026'408'232'448 - 1'014'686'023'680) + 1'014'686'023'680 / 2 + 1'014'686'023'680 / 32 * 2,
       70'272},
      // Kimi K2: (L, blocks) as DeepSeek V3 with 64 heads, 384 experts and one dense layer; from the same
      // sums.
      {"quant/moonshotai--Kimi-K2-Instruct_config.json", "FP8 W8A8", 1'029'173'203'808, 70'272},
      // gpt-oss: 24 × 32 × (5760·2880 + 2880·2880) = 19,110,297,600 values of 4.25 bits; biases stay.
      {"quant/openai--gpt-oss-20b_config.json", "MXFP4 W4A16",
       2 * (20'914'757'184 - 19'110'297'600) + 19'110'297'600 / 32 * 17, 24'576},
  };
  for (const OwnCase& c : cases) {
    SCOPED_TRACE(c.file);
    const Json document = read_config_file(c.file);
    const QuantConfig config = read_quant_config(document, "config.json");
    ASSERT_TRUE(config.known);
    ASSERT_EQ(uncounted_format(config), "");
    const SizeRow row = own_size_row(map_from_config(document, c.file), config, at(8192));
    EXPECT_EQ(row.scheme, c.name);
    EXPECT_EQ(row.weights.bytes(), c.weight_bytes);
    EXPECT_EQ(row.kv.per_token, c.kv_per_token);
  }
}

TEST(OwnSchemes, AreReadFromTheFileBesideTheConfig) {
  QUANTMAP_NEEDS(configs_dir());
  const Json document = read_config_file("quant/nvidia--DeepSeek-V3.1-NVFP4_config.json");
  EXPECT_FALSE(read_quant_config(document, "config.json").says_anything());
  const auto dir = testing::fresh_dir("map_side_file");
  std::filesystem::copy_file(configs_dir() / "quant/nvidia--DeepSeek-V3.1-NVFP4_hf_quant_config.json",
                             dir / "hf_quant_config.json");
  const QuantConfig config = read_quant_config_of_folder(dir, document);
  const SizeRow row = own_size_row(map_from_config(document, "config.json"), config, at(8192));
  EXPECT_EQ(row.scheme, "NVFP4 W4A4 + FP8 KV");
  EXPECT_EQ(config.ignored.size(), 246U);
  // o_proj, the three dense MLPs and all experts, shared ones too: q_a, q_b, kv_a, kv_b, head and routers
  // stay. L = 61·7168·16384 + 9·18432·7168 + 58·257·3·2048·7168, in 61 + 9 + 58·257·3 = 44,788 matrices.
  constexpr std::int64_t kL = 61 * 7168LL * 16384 + 9 * 18432LL * 7168 + 58 * 257 * 3 * 2048LL * 7168;
  EXPECT_EQ(row.weights.bytes(), 2 * (671'026'419'200 - kL) + kL / 2 + kL / 16 + 44'788 * 4);
  EXPECT_EQ(row.kv.per_token, 61 * 576);
}

TEST(Sizes, AgreeWithWhatEvalCounts) {
  QUANTMAP_NEEDS(configs_dir());
  for (const char* file : {"models/Qwen--Qwen3-8B_config.json", "models/Llama-3.2-1B_config.json",
                           "models/Qwen2.5-7B_config.json", "models/Mistral-7B-v0.1_config.json"}) {
    const Json document = read_config_file(file);
    const ModelConfig config = parse_config(document, file);
    const ModelMap map = map_from_config(document, file);
    for (const char* scheme : {"W4A16", "W4A16_ASYM,include=lm_head", "NVFP4,ignore=/layers\\.0\\./", "MXFP4",
                               "NF4", "W8A8+KVINT8", "FP8_BLOCK+KVFP8"}) {
      SCOPED_TRACE(std::string(file) + " " + scheme);
      const Scheme parsed = Scheme::parse(scheme);
      const SchemeSize theirs = scheme_size(config, &parsed);
      const SizeRow ours = row_of(map, scheme, 100);
      EXPECT_EQ(ours.weights.parameters(), theirs.parameters);
      EXPECT_NEAR(static_cast<double>(ours.weights.bits()), theirs.weight_bytes * 8, 1);
      EXPECT_EQ(ours.kv.per_token, theirs.kv_bytes_per_token);
    }
  }
}

TEST(Sizes, PartsSumToTheWhole) {
  QUANTMAP_NEEDS(configs_dir());
  for (const char* file : {"models/Qwen--Qwen3-30B-A3B_config.json", "quant/openai--gpt-oss-20b_config.json",
                           "quant/deepseek-ai--DeepSeek-V3_config.json"}) {
    const SizeRow row = row_of(map_of(file), "W4A16");
    std::int64_t linears = row.weights.vector_bits + row.weights.embedding_bits;
    for (const LinearClass& one : row.weights.linears) linears += one.bits;
    EXPECT_EQ(linears, row.weights.bits()) << file;
  }
}

TEST(Sizes, ExpertsByNumberAreToldApartOnlyWhereARuleDoes) {
  QUANTMAP_NEEDS(configs_dir());
  const ModelMap map = map_of("models/Qwen--Qwen3-30B-A3B_config.json");
  const std::int64_t all = row_of(map, "W4A16").weights.quantized_values;
  // One expert's three matrices of 768 × 2048 in each of 48 layers.
  EXPECT_EQ(row_of(map, "W4A16,ignore=/experts\\.7\\./").weights.quantized_values, all - 48 * 3 * 768 * 2048);
  EXPECT_EQ(row_of(map, "W4A16,ignore=model.layers.3.mlp.experts.127.up_proj").weights.quantized_values,
            all - 768 * 2048);
  // The same as experts walked one by one.
  EXPECT_EQ(row_of(map, "W4A16,ignore=/nothing/").weights.bits(), row_of(map, "W4A16").weights.bits());
}

TEST(Sizes, RefuseByName) {
  QUANTMAP_NEEDS(configs_dir());
  for (const char* file :
       {"models/Phi-3.5-MoE_config.json", "quant/Llama-4-Maverick-FP8-dynamic_config.json",
        "quant/nvidia--Gemma-4-31B-IT-NVFP4_config.json", "quant/nvidia--Qwen3.6-27B-NVFP4_config.json"}) {
    try {
      map_of(file);
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string(error.what()).find("model_type"), std::string::npos) << error.what();
    }
  }
}

TEST(Sizes, NameWhatTheyDoNotCount) {
  QUANTMAP_NEEDS(configs_dir());
  EXPECT_EQ(map_of("models/gemma-3-27b-multimodal_config.json").notes,
            std::vector<std::string>{"the vision part (vision_config) is not counted"});
  EXPECT_EQ(map_of("quant/moonshotai--Kimi-K2.5_config.json").notes,
            std::vector<std::string>{"the vision part (vision_config) is not counted"});
  EXPECT_EQ(map_of("quant/deepseek-ai--DeepSeek-V3_config.json").notes,
            std::vector<std::string>{"1 multi-token-prediction layer is not counted"});
}

}  // namespace
}  // namespace quantmap
