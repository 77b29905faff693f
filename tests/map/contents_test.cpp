// What files hold, told by their headers: every packing with its logical size, contradictions with the
// configuration, the faults of ../shared/cases/faults.md that show there.
#include "map/contents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "checkpoint/make_files.hpp"
#include "core/error.hpp"
#include "map/configs.hpp"
#include "map/inspection.hpp"
#include "map/map_from_contents.hpp"
#include "map/name_of_choices.hpp"

namespace quantmap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::fresh_dir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RawTensor;
using testing::safetensors_file;
using testing::write_file;
using Json = nlohmann::json;

TensorEntry tensor(std::string name, std::string dtype, std::vector<std::int64_t> shape, int bytes_each) {
  std::int64_t values = 1;
  for (const std::int64_t size : shape) values *= size;
  return {std::move(name), std::move(dtype), std::move(shape), values * bytes_each};
}

Contents contents_of(std::vector<TensorEntry> tensors, int bits_said = 0) {
  Contents contents;
  contents.tensors = std::move(tensors);
  tell_modules(contents, bits_said);
  return contents;
}

struct PackingCase {
  const char* what;
  std::vector<TensorEntry> tensors;
  Storage storage;
  const char* format;
  std::int64_t parameters, bytes;
  const char* granularity;
  std::int64_t group_size;
};

TEST(Contents, EveryPackingIsToldByItsTensors) {
  const std::string m = "model.layers.0.mlp.up_proj";
  // A matrix of 512 outputs and 1024 inputs: 524,288 values.
  const PackingCase cases[] = {
      {"plain",
       {tensor(m + ".weight", "BF16", {512, 1024}, 2)},
       Storage::plain,
       "BF16",
       524288,
       1048576,
       "",
       0},
      {"compressed-tensors int4, groups of 128",
       {tensor(m + ".weight_packed", "I32", {512, 128}, 4), tensor(m + ".weight_scale", "BF16", {512, 8}, 2),
        tensor(m + ".weight_shape", "I64", {2}, 8)},
       Storage::ct_packed,
       "int4",
       524288,
       262144 + 8192 + 16,
       "group",
       128},
      {"compressed-tensors FP8 per channel",
       {tensor(m + ".weight", "F8_E4M3", {512, 1024}, 1), tensor(m + ".weight_scale", "BF16", {512, 1}, 2)},
       Storage::fp8,
       "fp8_e4m3",
       524288,
       524288 + 1024,
       "channel",
       0},
      {"FP8 per tensor, static inputs",
       {tensor(m + ".weight", "F8_E4M3", {512, 1024}, 1), tensor(m + ".weight_scale", "F32", {}, 4),
        tensor(m + ".input_scale", "F32", {}, 4)},
       Storage::fp8,
       "fp8_e4m3",
       524288,
       524288 + 4,
       "tensor",
       0},
      {"FP8 in blocks of 128 × 128",
       {tensor(m + ".weight", "F8_E4M3", {512, 1024}, 1), tensor(m + ".weight_scale_inv", "F32", {4, 8}, 4)},
       Storage::fp8,
       "fp8_e4m3",
       524288,
       524288 + 128,
       "block",
       128},
      {"ModelOpt NVFP4",
       {tensor(m + ".weight", "U8", {512, 512}, 1), tensor(m + ".weight_scale", "F8_E4M3", {512, 64}, 1),
        tensor(m + ".weight_scale_2", "F32", {}, 4), tensor(m + ".input_scale", "F32", {}, 4)},
       Storage::nvfp4,
       "nvfp4",
       524288,
       262144 + 32768 + 4,
       "",
       16},
      {"compressed-tensors NVFP4",
       {tensor(m + ".weight_packed", "U8", {512, 512}, 1),
        tensor(m + ".weight_scale", "F8_E4M3", {512, 64}, 1),
        tensor(m + ".weight_global_scale", "F32", {1}, 4)},
       Storage::nvfp4,
       "nvfp4",
       524288,
       262144 + 32768 + 4,
       "",
       16},
      {"F4 counts values (S17)",
       {TensorEntry{m + ".weight", "F4", {512, 1024}, 262144},
        tensor(m + ".weight_scale", "F8_E8M0", {512, 32}, 1)},
       Storage::mxfp4,
       "mxfp4",
       524288,
       262144 + 16384,
       "",
       32},
      {"gpt-oss MXFP4",
       {tensor("model.layers.0.mlp.experts.down_proj_blocks", "U8", {4, 128, 32, 16}, 1),
        tensor("model.layers.0.mlp.experts.down_proj_scales", "U8", {4, 128, 32}, 1)},
       Storage::mxfp4,
       "mxfp4",
       524288,
       262144 + 16384,
       "",
       32},
      {"MXFP8",
       {tensor(m + ".weight", "F8_E4M3", {512, 1024}, 1), tensor(m + ".weight_scale", "U8", {512, 32}, 1)},
       Storage::mxfp8,
       "mxfp8_e4m3",
       524288,
       524288 + 16384,
       "",
       32},
      {"GPTQ of 4 bits",
       {tensor(m + ".qweight", "I32", {128, 512}, 4), tensor(m + ".qzeros", "I32", {8, 64}, 4),
        tensor(m + ".scales", "F16", {8, 512}, 2), tensor(m + ".g_idx", "I32", {1024}, 4)},
       Storage::gptq,
       "int4",
       524288,
       262144 + 2048 + 8192 + 4096,
       "group",
       128},
      {"GPTQ of 3 bits",
       {tensor(m + ".qweight", "I32", {96, 512}, 4), tensor(m + ".qzeros", "I32", {8, 48}, 4),
        tensor(m + ".scales", "F16", {8, 512}, 2), tensor(m + ".g_idx", "I32", {1024}, 4)},
       Storage::gptq,
       "int3",
       524288,
       196608 + 1536 + 8192 + 4096,
       "group",
       128},
      {"AWQ",
       {tensor(m + ".qweight", "I32", {1024, 64}, 4), tensor(m + ".qzeros", "I32", {8, 64}, 4),
        tensor(m + ".scales", "F16", {8, 512}, 2)},
       Storage::awq,
       "int4",
       524288,
       262144 + 2048 + 8192,
       "group",
       128},
      {"bitsandbytes NF4",
       {tensor(m + ".weight", "U8", {262144, 1}, 1), tensor(m + ".weight.absmax", "F32", {8192}, 4),
        tensor(m + ".weight.quant_map", "F32", {16}, 4),
        tensor(m + ".weight.quant_state.bitsandbytes__nf4", "U8", {90}, 1)},
       Storage::bnb_4bit,
       "nf4",
       524288,
       262144 + 32768 + 64 + 90,
       "",
       64},
      {"compressed-tensors INT8",
       {tensor(m + ".weight", "I8", {512, 1024}, 1), tensor(m + ".weight_scale", "BF16", {512, 1}, 2)},
       Storage::int8,
       "int8",
       524288,
       524288 + 1024,
       "channel",
       0},
  };
  for (const PackingCase& c : cases) {
    SCOPED_TRACE(c.what);
    const Contents contents = contents_of(c.tensors, 4);
    ASSERT_EQ(contents.modules.size(), 1U);
    const ModuleContents& module = contents.modules.begin()->second;
    EXPECT_EQ(module.storage, c.storage);
    EXPECT_EQ(module.format, c.format);
    EXPECT_EQ(module.parameters, c.parameters);
    EXPECT_EQ(contents.parameters, c.parameters);
    EXPECT_EQ(module.weight_bytes, c.bytes);
    EXPECT_EQ(module.granularity, c.granularity);
    EXPECT_EQ(module.group_size, c.group_size);
  }
}

TEST(Contents, PackedWordsAreNoParameters) {  // B59: 2048 × 2048 in int4, groups of 128
  const Contents contents = contents_of(
      {tensor("l.weight_packed", "I32", {2048, 256}, 4), tensor("l.weight_scale", "BF16", {2048, 16}, 2)}, 4);
  EXPECT_EQ(contents.parameters, 4'194'304);
  EXPECT_EQ(contents.bytes, 2'097'152 + 65'536);
  EXPECT_EQ(8.0 * static_cast<double>(contents.bytes) / static_cast<double>(contents.parameters), 4.125);
}

TEST(Contents, BiasesAndSinksAreParameters) {
  const Contents contents =
      contents_of({tensor("model.layers.0.mlp.gate.weight", "BF16", {8, 16}, 2),
                   tensor("model.layers.0.mlp.gate.e_score_correction_bias", "F32", {8}, 4),
                   tensor("model.layers.0.mlp.experts.gate_up_proj_bias", "BF16", {8, 32}, 2),
                   tensor("model.layers.0.self_attn.q_proj.bias", "BF16", {16}, 2),
                   tensor("model.layers.0.self_attn.sinks", "BF16", {4}, 2)});
  EXPECT_EQ(contents.parameters, 8 * 16 + 8 + 8 * 32 + 16 + 4);
}

TEST(Contents, ScalesOfKeysAndValuesHaveFourNames) {  // B55
  const std::string layer = "model.layers.0.self_attn";
  const std::vector<std::string> names = {layer + ".k_proj.k_scale", layer + ".v_proj.v_scale",
                                          layer + ".k_scale", layer + ".k_proj.output_scale",
                                          layer + ".kv_scale"};
  for (const std::string& name : names) {
    const Contents contents = contents_of({tensor(name, "F32", {}, 4)});
    EXPECT_THAT(contents.kv_scales, ElementsAre(name));
    EXPECT_EQ(contents.parameters, 0);
  }
  EXPECT_THAT(contents_of({tensor(layer + ".o_proj.output_scale", "F32", {}, 4)}).kv_scales, IsEmpty());
}

// A layer of a quantized checkpoint and the configuration that says so.
struct Checkpoint8 {
  Json config = {
      {"model_type", "llama"},
      {"tie_word_embeddings", false},
      {"quantization_config",
       {{"quant_method", "compressed-tensors"},
        {"format", "float-quantized"},
        {"config_groups",
         {{"g",
           {{"targets", {"Linear"}},
            {"weights", {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}, {"dynamic", false}}},
            {"input_activations",
             {{"num_bits", 8}, {"type", "float"}, {"strategy", "token"}, {"dynamic", true}}}}}}},
        {"ignore", {"lm_head"}}}}};
  std::vector<TensorEntry> tensors = {tensor("model.embed_tokens.weight", "BF16", {32, 16}, 2),
                                      tensor("lm_head.weight", "BF16", {32, 16}, 2),
                                      tensor("model.layers.0.input_layernorm.weight", "BF16", {16}, 2),
                                      tensor("model.layers.0.mlp.up_proj.weight", "F8_E4M3", {32, 16}, 1),
                                      tensor("model.layers.0.mlp.up_proj.weight_scale", "BF16", {32, 1}, 2)};
  std::vector<std::string> warnings() const {
    const QuantConfig quantization = read_quant_config(config, "config.json");
    EXPECT_THAT(quantization.warnings, IsEmpty());
    return contradictions(config, quantization, contents_of(tensors));
  }
};

TEST(Contradictions, NoneWhereFilesAndConfigurationAgree) {
  EXPECT_THAT(Checkpoint8().warnings(), IsEmpty());
}

TEST(Contradictions, EachKindIsNamedWithAnExample) {
  {
    Checkpoint8 c;
    c.tensors.push_back(tensor("model.layers.0.mlp.down_proj.weight", "BF16", {16, 32}, 2));
    EXPECT_THAT(c.warnings(), ElementsAre(AllOf(HasSubstr("in full precision"),
                                                HasSubstr("model.layers.0.mlp.down_proj: BF16"))));
  }
  {
    Checkpoint8 c;
    c.config["quantization_config"]["ignore"].push_back("re:.*up_proj");
    c.tensors.push_back(tensor("model.layers.0.mlp.down_proj.weight", "F8_E4M3", {16, 32}, 1));
    EXPECT_THAT(c.warnings(), ElementsAre(AllOf(HasSubstr("leaves alone"), HasSubstr("up_proj: fp8_e4m3"))));
  }
  {
    Checkpoint8 c;
    c.tensors[3].dtype = "I8";
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("says fp8_e4m3, and the files hold int8")));
  }
  {
    Checkpoint8 c;
    c.tensors.resize(3);
    c.tensors.push_back(tensor("model.layers.0.mlp.up_proj.weight", "BF16", {32, 16}, 2));
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("hold no quantized weight")));
  }
  {  // B57: lm_head does not match language_model.lm_head
    Checkpoint8 c;
    c.tensors[1].name = "language_model.lm_head.weight";
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("language_model.lm_head: BF16")));
  }
  {
    Checkpoint8 c;
    c.config.erase("quantization_config");
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("no configuration says anything")));
  }
  {  // B55: a cache declared FP8 without scales is 1.0 by default, not loaded
    Checkpoint8 c;
    c.config["quantization_config"]["kv_cache_scheme"] = {
        {"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}};
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("1.0 by default")));
    c.tensors.push_back(tensor("model.layers.0.self_attn.k_scale", "F32", {}, 4));
    EXPECT_THAT(c.warnings(), IsEmpty());
    c.config["quantization_config"].erase("kv_cache_scheme");
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("says nothing of the cache")));
  }
  {
    Checkpoint8 c;
    c.config["quantization_config"]["config_groups"]["g"]["input_activations"]["dynamic"] = false;
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("no input_scale")));
  }
  {  // B25: no head in the files
    Checkpoint8 c;
    c.tensors.erase(c.tensors.begin() + 1);
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("tie_word_embeddings is false")));
    c.config.erase("tie_word_embeddings");
    EXPECT_THAT(c.warnings(), ElementsAre(HasSubstr("tie_word_embeddings is not said")));
    c.config["tie_word_embeddings"] = true;
    EXPECT_THAT(c.warnings(), IsEmpty());
  }
}

TEST(Contents, AnUnknownDtypeIsAWarningAndTheRestIsListed) {
  const auto dir = fresh_dir("map_unknown_dtype");
  write_file(dir / "model.safetensors",
             safetensors_file(std::vector<RawTensor>{{"a.weight", "F7_E3M3", {3}, "abc"},
                                                     {"b.weight", "BF16", {2}, "abcd"}}));
  const Contents contents = read_contents(dir, 0);
  EXPECT_THAT(contents.warnings, ElementsAre(AllOf(HasSubstr("a.weight"), HasSubstr("F7_E3M3"))));
  EXPECT_EQ(contents.tensors.size(), 2U);
  EXPECT_EQ(contents.bytes, 7);
}

TEST(Contents, BadFilesAreRefusedByName) {
  const auto refusal = [](const char* name, const std::string& file) {
    const auto dir = fresh_dir(name);
    write_file(dir / "model.safetensors", file);
    try {
      read_contents(dir, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  // B27: a name twice, a hole, a size that does not fit, an overflow.
  const std::string f32 = R"("dtype":"F32","shape":[1],"data_offsets":)";
  EXPECT_THAT(refusal("map_twice",
                      safetensors_file(R"({"w":{)" + f32 + R"([0,4]},"w":{)" + f32 + "[4,8]}}", "12345678")),
              HasSubstr("\"w\" occurs twice"));
  EXPECT_THAT(refusal("map_hole", safetensors_file(R"({"w":{)" + f32 + "[4,8]}}", "12345678")),
              HasSubstr("hole"));
  EXPECT_THAT(refusal("map_end", safetensors_file(R"({"w":{)" + f32 + "[0,4]}}", "12")),
              HasSubstr("within the buffer"));
  EXPECT_THAT(
      refusal("map_overflow",
              safetensors_file(
                  R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", "1234")),
      HasSubstr("2^63"));
  // S17: an odd last dimension of F4.
  EXPECT_THAT(refusal("map_f4",
                      safetensors_file(R"({"w":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", "123")),
              HasSubstr("even last dimension"));
}

TEST(Contents, AMissingShardStopsAndOtherDisagreementsAreWarnings) {  // B29
  const auto dir = fresh_dir("map_shards");
  const std::vector<RawTensor> first{{"a.weight", "BF16", {2}, "abcd"}};
  write_file(dir / "model-00001-of-00002.safetensors", safetensors_file(first));
  write_file(dir / "model-old-copy.safetensors",
             safetensors_file(std::vector<RawTensor>{{"z.weight", "BF16", {2}, "abcd"}}));
  const char* both =
      R"({"weight_map":{"a.weight":"model-00001-of-00002.safetensors","b.weight":"model-00002-of-00002.safetensors"}})";
  write_file(dir / "model.safetensors.index.json", both);
  try {
    read_contents(dir, 0);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model-00002-of-00002.safetensors"));
  }
  write_file(dir / "model-00002-of-00002.safetensors",
             safetensors_file(std::vector<RawTensor>{{"c.weight", "BF16", {2}, "abcd"}}));
  const Contents contents = read_contents(dir, 0);
  EXPECT_THAT(contents.warnings, Contains(HasSubstr("\"b.weight\"")));
  EXPECT_THAT(contents.warnings, Contains(HasSubstr("c.weight")));
  ASSERT_EQ(contents.tensors.size(), 1U);  // the stray copy is not read
  EXPECT_EQ(contents.tensors[0].name, "a.weight");
}

TEST(Contents, TensorDataAreNotTouched) {
  // A checkpoint of 1.3 TB that takes no room: data are a hole of the file. Reading it would take minutes;
  // what is read is the headers.
  const auto dir = fresh_dir("map_sparse");
  constexpr int kShards = 16, kTensors = 500;
  constexpr std::int64_t kRows = 16384, kCols = 10240;
  Json map = Json::object();
  std::int64_t headers = 0;
  for (int shard = 0; shard < kShards; ++shard) {
    Json header = Json::object();
    std::int64_t offset = 0;
    const std::string file = "model-" + std::to_string(shard) + ".safetensors";
    for (int i = 0; i < kTensors; ++i) {
      const std::string name =
          "model.layers." + std::to_string(shard) + ".mlp.experts." + std::to_string(i) + ".up_proj.weight";
      header[name] = {{"dtype", "F8_E4M3"},
                      {"shape", {kRows, kCols}},
                      {"data_offsets", {offset, offset + kRows * kCols}}};
      offset += kRows * kCols;
      map[name] = file;
    }
    const std::string text = safetensors_file(header.dump());
    headers += static_cast<std::int64_t>(text.size());
    write_file(dir / file, text);
    std::error_code failed;
    std::filesystem::resize_file(dir / file, text.size() + static_cast<std::uintmax_t>(offset), failed);
    if (failed) GTEST_SKIP() << "no sparse files of this size here: " << failed.message();
  }
  write_file(dir / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  const auto resident = [] {
    std::ifstream in("/proc/self/statm");
    std::int64_t pages = 0, held = 0, shared = 0;
    in >> pages >> held >> shared;
    return shared * 4096;
  };
  const std::int64_t before = resident();
  const Contents contents = read_contents(dir, 0);
  EXPECT_EQ(contents.tensors.size(), static_cast<std::size_t>(kShards * kTensors));
  EXPECT_EQ(contents.bytes, kShards * kTensors * kRows * kCols);
  // Pages that the maps brought in: the headers, and what the kernel reads ahead of them.
  EXPECT_LT(resident() - before, headers + kShards * 4 * 1024 * 1024);
  std::filesystem::remove_all(dir);
}

TEST(Contents, AFamilyThatIsNotKnownIsCountedByItsTensors) {
  const Contents contents = contents_of({tensor("model.embed_tokens.weight", "BF16", {100, 64}, 2),
                                         tensor("model.layers.0.mixer.in_proj.weight", "BF16", {128, 64}, 2),
                                         tensor("model.layers.0.mixer.A_log", "F32", {8}, 4),
                                         tensor("model.layers.0.norm.weight", "BF16", {64}, 2),
                                         tensor("lm_head.weight", "BF16", {100, 64}, 2)});
  const ModelMap map = map_from_contents(contents, "m");
  EXPECT_EQ(map.parameters(), 2 * 6400 + 8192 + 8 + 64);
  EXPECT_FALSE(map.tied_embeddings);
  const WeightBytes w8 = weight_bytes(map, choice_of(Scheme::parse("W8A16")));
  EXPECT_EQ(w8.quantized_values, 8192);
}

TEST(Contents, GgufTypesByTensorAndFileType) {
  QUANTMAP_NEEDS(testing::shared_dir() / "data/stories260K/stories260K.gguf");
  const Contents contents = read_gguf_contents(testing::shared_dir() / "data/stories260K/stories260K.gguf");
  EXPECT_TRUE(contents.gguf);
  EXPECT_EQ(contents.file_type, "");  // the file does not say; its tensors do
  EXPECT_THAT(contents.warnings, IsEmpty());
  const Inspection inspection = inspect(Json(), QuantConfig(), &contents, nullptr);
  EXPECT_EQ(inspection.name, "GGUF F32");
  EXPECT_FALSE(inspection.weights.has_value());
  EXPECT_EQ(*inspection.bpw_model, 32);
}

TEST(Contents, AGgufThatIsNamedForATypeItDoesNotHoldIsNamed) {
  testing::GgufWriter writer;
  const auto dir = fresh_dir("map_gguf_type");
  writer.string("general.architecture", "llama");
  writer.u32("general.file_type", 15);                                               // Q4_K_M
  writer.tensor("blk.0.ffn_up.weight", 8, {2, 256}, std::string(2 * 8 * 34, '\0'));  // Q8_0
  write_file(dir / "m.gguf", writer.file());
  const Contents contents = read_gguf_contents(dir / "m.gguf");
  EXPECT_EQ(contents.file_type, "Q4_K_M");
  EXPECT_THAT(contents.warnings, ElementsAre(HasSubstr("no matrix is Q4_K")));
}

TEST(Contents, AGgufsOwnRowIsWhatItsFileHolds) {
  testing::GgufWriter writer;
  const auto dir = fresh_dir("map_gguf_own");
  writer.string("general.architecture", "llama");
  writer.tensor("token_embd.weight", 8, {4, 256}, std::string(4 * 8 * 34, '\0'));  // Q8_0, and no head: tied
  writer.tensor("blk.0.ffn_up.weight", 2, {2, 256}, std::string(2 * 8 * 18, '\0'));  // Q4_0: 18 bytes for 32
  writer.tensor("blk.0.ffn_norm.weight", 0, {256}, std::string(256 * 4, '\0'));      // F32
  write_file(dir / "m.gguf", writer.file());
  const Contents contents = read_gguf_contents(dir / "m.gguf");
  const WeightBytes bytes = weight_bytes_of_files(contents);
  EXPECT_EQ(bytes.parameters(), 4 * 256 + 2 * 256 + 256);
  EXPECT_EQ(bytes.bytes(), 4 * 8 * 34 + 2 * 8 * 18 + 1024);
  EXPECT_EQ(bytes.part(Part::embeddings).bits, 8 * 4 * 8 * 34);
  EXPECT_EQ(bytes.part(Part::mlp).bits, 8 * 2 * 8 * 18);
  EXPECT_TRUE(bytes.tied);
  ASSERT_EQ(bytes.linears.size(), 1U);
  ASSERT_TRUE(bytes.linears[0].stored.weight.has_value());
  EXPECT_EQ(bytes.linears[0].stored.weight->format->id, "q4_0");
  // By format: (8.5 bits × 1024 + 4.5 × 512) / 1536.
  EXPECT_EQ(*bytes.bpw_quantized(), (8.5 * 1024 + 4.5 * 512) / 1536);
}

TEST(Contents, BadContainersOfGgufAreRefused) {  // B31
  for (const std::uint32_t alignment : {0U, 12U}) {
    testing::GgufWriter writer;
    const auto dir = fresh_dir("map_gguf_alignment");
    writer.string("general.architecture", "llama");
    writer.u32("general.alignment", alignment);
    write_file(dir / "m.gguf", writer.file());
    EXPECT_THROW(read_gguf_contents(dir / "m.gguf"), Error) << alignment;
  }
  const auto dir = fresh_dir("map_gguf_endian");
  testing::GgufWriter writer;
  std::string file = writer.file();
  std::swap(file[4], file[7]);  // version 3 as a big-endian file has it
  write_file(dir / "m.gguf", file);
  try {
    read_gguf_contents(dir / "m.gguf");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("big-endian"));
  }
}

}  // namespace
}  // namespace quantmap
