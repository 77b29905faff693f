// The file as others see it: h5py and h5dump open it and find what product.md promises.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "capture/support.hpp"
#include "core/fingerprint.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::run;
using Json = nlohmann::json;

// A python that has h5py; empty: none.
std::string python() {
  for (const char* name : {"python3", "/usr/bin/python3"})
    if (run({name, "-c", "import h5py, numpy"}).status == 0) return name;
  return "";
}

std::string sha_of(const std::vector<float>& values) {
  return sha256({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

class CaptureInPython : public ::testing::TestWithParam<StoreType> {};

TEST_P(CaptureInPython, ShowsWhatTheContractPromises) {
  const std::string interpreter = python();
  if (interpreter.empty()) GTEST_SKIP() << "needs h5py";
  const auto dir = fresh_dir("h5py");
  testing::write_tiny_model(dir / "model");
  const Checkpoint checkpoint = Checkpoint::open(dir / "model");
  testing::CaptureSetup setup;
  setup.store = GetParam();
  setup.level = 1;
  CaptureJob job = testing::capture_job(checkpoint, dir / "f.h5", setup);
  job.contents.info.command_line = "quantmap capture é";
  run_capture(job);
  const testing::RunResult result =
      run({interpreter, (testing::source_dir() / "tests/capture/check_capture.py").string(),
           (dir / "f.h5").string()});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json seen = Json::parse(result.out);

  const Json& root = seen["attributes"];
  EXPECT_EQ(root["quantmap_schema"], 1);
  EXPECT_EQ(root["complete"], 1);
  EXPECT_EQ(root["ctx"], 40);
  EXPECT_EQ(root["windows"], 3);
  EXPECT_EQ(root["compute"], "f32");
  EXPECT_EQ(root["store"], store_name(GetParam()));
  EXPECT_EQ(root["model_sha256"], checkpoint.fingerprint());
  EXPECT_EQ(root["command_line"], "quantmap capture é");
  EXPECT_EQ(root["version"], "test");
  for (const char* name : {"text_sha256", "token_ids_sha256", "git_revision", "config", "selection"})
    EXPECT_TRUE(root.contains(name)) << name;

  const Json& datasets = seen["datasets"];
  EXPECT_EQ(datasets["tokens"]["shape"], Json({3, 40}));
  EXPECT_EQ(datasets["tokens"]["dtype"], "int32");
  const auto ids = testing::window_ids(120, 64);
  EXPECT_EQ(datasets["tokens"]["sha256"], sha256_of_ids(ids));
  EXPECT_EQ(datasets["rows"]["shape"], Json({40}));

  const Capture capture = Capture::open(dir / "f.h5");
  const testing::Values all = testing::read_all(capture);
  const char* type = GetParam() == StoreType::f16 ? "float16" : "float32";  // numpy has no bfloat16
  std::size_t compared = 0;
  for (const auto& [name, values] : all) {
    const bool tensor = name.find(' ') == std::string::npos;
    const Json& dataset = datasets[(tensor ? tensor_dataset(name) : site_dataset(name)).substr(1)];
    EXPECT_EQ(dataset["dtype"], type) << name;
    EXPECT_EQ(dataset["bytes"], store_bytes(GetParam())) << name;
    EXPECT_EQ(dataset["sha256"], sha_of(values)) << name;
    EXPECT_EQ(dataset["attributes"]["complete"], 1) << name;
    EXPECT_EQ(dataset["attributes"]["overflows"], 0) << name;
    EXPECT_TRUE(dataset["chunks"].is_array()) << name;
    if (tensor) {
      EXPECT_EQ(dataset["shape"], Json(checkpoint.find(name)->shape)) << name;
    }
    ++compared;
  }
  EXPECT_EQ(compared + 2, datasets.size());
  EXPECT_EQ(datasets["activations/model.layers.0.mlp.down_proj/input"]["shape"], Json({120, 48}));
  EXPECT_EQ(datasets["kv/model.layers.1.self_attn/key"]["shape"], Json({120, 2, 16}));
  const auto address = [&](const char* name) { return datasets[name]["address"]; };
  EXPECT_EQ(address("activations/model.layers.1.self_attn.q_proj/input"),
            address("activations/model.layers.1.self_attn.v_proj/input"));
  EXPECT_NE(address("activations/model.layers.1.self_attn.q_proj/input"),
            address("activations/model.layers.0.self_attn.q_proj/input"));
}

INSTANTIATE_TEST_SUITE_P(Types, CaptureInPython,
                         ::testing::Values(StoreType::f32, StoreType::bf16, StoreType::f16),
                         [](const auto& param) { return store_name(param.param); });

TEST(CaptureInH5dump, Opens) {
  if (run({"h5dump", "--version"}).status != 0) GTEST_SKIP() << "needs h5dump";
  const auto dir = fresh_dir("h5dump");
  testing::write_tiny_model(dir / "model");
  const Checkpoint checkpoint = Checkpoint::open(dir / "model");
  testing::CaptureSetup setup;
  setup.store = StoreType::bf16;
  setup.level = 1;
  run_capture(testing::capture_job(checkpoint, dir / "f.h5", setup));
  const testing::RunResult header = run({"h5dump", "-H", "-p", (dir / "f.h5").string()});
  EXPECT_EQ(header.status, 0) << header.err;
  for (const char* text : {"GROUP \"model.layers.1.mlp.down_proj\"", "HARDLINK", "COMPRESSION DEFLATE",
                           "SHUFFLE", "16-bit little-endian floating-point", "ATTRIBUTE \"quantmap_schema\""})
    EXPECT_THAT(header.out, HasSubstr(text));
  const testing::RunResult data =
      run({"h5dump", "-d", "/activations/model.norm/output", "-y", (dir / "f.h5").string()});
  EXPECT_EQ(data.status, 0) << data.err;
}

}  // namespace
}  // namespace quantmap
