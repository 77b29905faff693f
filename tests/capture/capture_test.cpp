// A capture holds what the forward pass computes, whatever the memory, the interruptions and the selection.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "capture/support.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "formats/bf16.hpp"
#include "formats/fp16.hpp"

namespace quantmap {
namespace {

using testing::capture_job;
using testing::CaptureSetup;
using testing::expect_same_bits;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::read_all;
using testing::TinyModel;
using testing::Values;
using testing::write_tiny_gguf;
using testing::write_tiny_model;

class CaptureOfTiny : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ =
        fresh_dir(std::string("capture_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    TinyModel model;
    model.dtype = "BF16";
    write_tiny_model(dir_ / "model", model);
    checkpoint_.emplace(Checkpoint::open(dir_ / "model"));
  }
  Values made(const std::string& name, const CaptureSetup& setup) {
    run_capture(capture_job(*checkpoint_, dir_ / name, setup));
    return read_all(Capture::open(dir_ / name));
  }
  std::filesystem::path dir_;
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(CaptureOfTiny, TensorsAreTheCheckpoints) {
  run_capture(capture_job(*checkpoint_, dir_ / "f.h5"));
  const Capture capture = Capture::open(dir_ / "f.h5");
  EXPECT_EQ(capture.tensors().size(), checkpoint_->tensors().size());
  const TensorSource& source = capture;
  for (const TensorEntry& tensor : checkpoint_->tensors()) {
    const TensorEntry* found = source.find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(found->dtype, "F32");
    const std::int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1, cols = tensor.shape.back();
    const std::int64_t begin = rows / 3;  // not only from the first row
    std::vector<float> want(static_cast<std::size_t>((rows - begin) * cols)), got(want.size());
    checkpoint_->read(tensor.name, begin, rows, want.data());
    source.read(tensor.name, begin, rows, got.data());
    EXPECT_EQ(got, want) << tensor.name;
  }
  EXPECT_EQ(source.find("lm_head.bias"), nullptr);
  float value = 0;
  EXPECT_THROW(source.read("lm_head.bias", 0, 1, &value), Error);
}

// In double, from what the file holds alone.
TEST_F(CaptureOfTiny, AnOutputIsItsInputTimesItsWeights) {
  const Values all = made("f.h5", {});
  int compared = 0;
  for (const auto& [name, y] : all) {
    if (!name.ends_with("_proj output")) continue;
    const std::string module = name.substr(0, name.find(' '));
    const auto& x = all.at(module + " input");
    const auto& w = all.at(module + ".weight");
    const std::int64_t rows = 3 * 40;
    const std::int64_t out = static_cast<std::int64_t>(y.size()) / rows,
                       in = static_cast<std::int64_t>(x.size()) / rows;
    double worst = 0, largest = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = 0;
        for (std::int64_t i = 0; i < in; ++i)
          sum += double{x[static_cast<std::size_t>(r * in + i)]} *
                 double{w[static_cast<std::size_t>(o * in + i)]};
        const double gap = std::abs(sum - double{y[static_cast<std::size_t>(r * out + o)]});
        worst = !(gap <= worst) ? gap : worst;
        largest = std::max(largest, std::abs(sum));
      }
    EXPECT_TRUE(worst <= 1e-5 * largest) << name << ": " << worst << " of " << largest;
    ++compared;
  }
  EXPECT_EQ(compared, 14);
}

// Rows are window-major, so those of the first windows come first in a longer capture.
TEST_F(CaptureOfTiny, PassesAndThreadsChangeNoBit) {
  const Values wide = made("wide.h5", {});
  set_thread_count(3);
  CaptureSetup narrow;
  std::int64_t least = 0;
  try {
    narrow.memory = 1;
    run_capture(capture_job(*checkpoint_, dir_ / "none.h5", narrow));
    FAIL() << "one byte sufficed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    const std::string line = error.what();
    EXPECT_THAT(line, HasSubstr("the least possible is "));
    least = std::stoll(line.substr(line.rfind("is ") + 3)) << 20;
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "none.h5"));
  narrow.memory = least;
  narrow.windows = 60;  // so that they cannot go at once
  std::int64_t passes = 0;
  CaptureJob job = capture_job(*checkpoint_, dir_ / "narrow.h5", narrow);
  job.announce = [&](const CapturePlan& plan) {
    passes = plan.passes;
    EXPECT_LE(plan.bytes, narrow.memory);
  };
  run_capture(job);
  set_thread_count(0);
  EXPECT_GT(passes, 1);
  const Values many = read_all(Capture::open(dir_ / "narrow.h5"));
  ASSERT_EQ(many.size(), wide.size());
  for (const auto& [name, values] : wide) {
    const auto& more = many.at(name);
    ASSERT_GE(more.size(), values.size());
    EXPECT_TRUE(std::equal(values.begin(), values.end(), more.begin())) << name;
  }
}

TEST_F(CaptureOfTiny, CompressionChangesNoBit) {
  const Values plain = made("plain.h5", {});
  CaptureSetup setup;
  setup.level = 6;
  expect_same_bits(made("packed.h5", setup), plain);
  EXPECT_LT(std::filesystem::file_size(dir_ / "packed.h5"), std::filesystem::file_size(dir_ / "plain.h5"));
}

// Lengths with and without divisors, shorter and longer than a tile.
TEST_F(CaptureOfTiny, KeptRowsAreThoseOfTheWhole) {
  for (const std::int64_t ctx : {1, 7, 40, 131, 256, 300}) {
    CaptureSetup setup;
    setup.ctx = ctx;
    setup.windows = 2;
    setup.selection.weights = false;
    const std::string name = std::to_string(ctx);
    const Values whole = made("whole" + name, setup);
    for (const bool spread : {false, true}) {
      CaptureSetup some = setup;
      if (spread)
        some.tokens = std::max<std::int64_t>(1, ctx * 2 / 3);
      else
        some.every = 3;
      const std::string file = "some" + name + (spread ? "t" : "e");
      const Values kept = made(file, some);
      const Capture capture = Capture::open(dir_ / file);
      const auto rows = capture.rows();
      EXPECT_EQ(rows[0], 0);
      ASSERT_EQ(kept.size(), whole.size());
      for (const auto& [site, values] : kept) {
        const auto width = static_cast<std::size_t>(capture.width(site));
        ASSERT_EQ(values.size(), 2 * rows.size() * width);
        for (std::size_t w = 0; w < 2; ++w)
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto from = w * static_cast<std::size_t>(ctx) + static_cast<std::size_t>(rows[i]);
            ASSERT_TRUE(
                std::equal(values.begin() + static_cast<std::ptrdiff_t>((w * rows.size() + i) * width),
                           values.begin() + static_cast<std::ptrdiff_t>((w * rows.size() + i + 1) * width),
                           whole.at(site).begin() + static_cast<std::ptrdiff_t>(from * width)))
                << site << " window " << w << " row " << i;
          }
      }
    }
  }
}

TEST_F(CaptureOfTiny, SixteenBitTypesRoundOnce) {
  const Values exact = made("f32.h5", {});
  for (const StoreType store : {StoreType::bf16, StoreType::f16}) {
    CaptureSetup setup;
    setup.store = store;
    const Values rounded = made(store_name(store), setup);
    for (const auto& [name, values] : exact)
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(rounded.at(name)[i],
                  store == StoreType::bf16 ? round_to_bf16(values[i]) : round_to_fp16(values[i]))
            << name << " " << i;
  }
}

TEST(CaptureOverflow, IsCountedByDataset) {
  const auto dir = fresh_dir("capture_overflow");
  TinyModel model;
  write_tiny_model(dir / "model", model);
  // The first norm's weights lifted, so that what follows it is beyond FP16.
  std::vector<testing::RawTensor> tensors;
  for (testing::TinyTensor& tensor : testing::tiny_weights(model)) {
    if (tensor.name == "model.layers.0.input_layernorm.weight")
      tensor.values.assign(tensor.values.size(), 1e6F);
    tensors.push_back({tensor.name, "F32", tensor.shape, testing::encode_values(tensor.values, "F32")});
  }
  testing::write_file(dir / "model/model.safetensors", testing::safetensors_file(tensors));
  const Checkpoint checkpoint = Checkpoint::open(dir / "model");
  const Values exact = [&] {
    run_capture(capture_job(checkpoint, dir / "exact.h5"));
    return read_all(Capture::open(dir / "exact.h5"));
  }();
  CaptureSetup setup;
  setup.store = StoreType::f16;
  const CaptureReport report = run_capture(capture_job(checkpoint, dir / "f.h5", setup));
  const Capture capture = Capture::open(dir / "f.h5");
  std::int64_t total = 0;
  for (const CaptureSite& site : capture_sites(checkpoint.config(), {})) {
    std::int64_t beyond = 0;
    for (const float value : exact.at(site.names[0])) beyond += std::abs(value) >= 65520.0F ? 1 : 0;
    EXPECT_EQ(capture.overflows(site.names[0]), beyond) << site.names[0];
    total += beyond;
  }
  EXPECT_GT(total, 100);
  EXPECT_EQ(report.overflows.values, total + model.hidden);  // the norm itself
  EXPECT_GE(report.overflows.datasets, 3);
}

// At one of its steps after another.
TEST_F(CaptureOfTiny, InterruptedAndResumedEqualsUnbroken) {
  CaptureSetup setup;
  setup.windows = 30;
  setup.memory = std::int64_t{12} << 20;
  setup.store = StoreType::bf16;
  const Values unbroken = made("whole.h5", setup);
  int interruptions = 0;
  for (int step = 1; step < 1000; step += step < 8 ? 1 : 9) {  // the first ones all
    const auto path = dir_ / ("step" + std::to_string(step));
    CaptureJob job = capture_job(*checkpoint_, path, setup);
    int asked = 0;
    job.interrupted = [&] { return ++asked >= step; };
    try {
      run_capture(job);
      break;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("--resume goes on"));
      ++interruptions;
    }
    try {
      Capture::open(path);
      FAIL() << "an unfinished file was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), HasSubstr("unfinished"));
    }
    job.interrupted = nullptr;
    job.resume = true;
    // Other passes than those of the first run.
    if (step % 2 == 1) job.memory = std::int64_t{1} << 30;
    run_capture(job);
    expect_same_bits(read_all(Capture::open(path)), unbroken);
  }
  EXPECT_GT(interruptions, 5);
}

TEST_F(CaptureOfTiny, ResumeIsForTheSameInputsOnly) {
  CaptureSetup setup;
  CaptureJob job = capture_job(*checkpoint_, dir_ / "f.h5", setup);
  int asked = 0;
  job.interrupted = [&] { return ++asked > 3; };
  EXPECT_THROW(run_capture(job), Error);
  job.interrupted = nullptr;
  try {
    run_capture(job);
    FAIL() << "an existing file was overwritten";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it exists"));
  }
  job.resume = true;
  const auto refused = [&](const char* what, auto change) {
    CaptureJob other = job;
    change(other.contents);
    try {
      run_capture(other);
      FAIL() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), HasSubstr(std::string("begun with another ") + what));
    }
  };
  refused("compute", [](CaptureContents& c) { c.info.compute = Compute::bf16; });
  refused("store", [](CaptureContents& c) { c.info.store = StoreType::f16; });
  refused("window_ids_sha256", [](CaptureContents& c) { c.tokens[5] ^= 1; });
  refused("rows_sha256", [](CaptureContents& c) { c.rows.pop_back(); });
  refused("model_sha256", [](CaptureContents& c) { c.info.model_sha256 = "x"; });
  refused("selection", [](CaptureContents& c) { c.info.selection = "--layers 0"; });
  refused("git_revision", [](CaptureContents& c) { c.info.git_revision = "x"; });
  EXPECT_FALSE(run_capture(job).was_complete);
  EXPECT_TRUE(run_capture(job).was_complete);
}

TEST_F(CaptureOfTiny, GgufGivesTheSameCaptureAsSafetensors) {
  TinyModel model;
  model.dtype = "BF16";
  model.family = "llama";
  write_tiny_model(dir_ / "hf", model);
  write_tiny_gguf(dir_ / "m.gguf", model);
  const Checkpoint hf = Checkpoint::open(dir_ / "hf"), gguf = Checkpoint::open(dir_ / "m.gguf");
  run_capture(capture_job(hf, dir_ / "hf.h5"));
  run_capture(capture_job(gguf, dir_ / "gguf.h5"));
  expect_same_bits(read_all(Capture::open(dir_ / "gguf.h5")), read_all(Capture::open(dir_ / "hf.h5")));
}

TEST_F(CaptureOfTiny, OnlyWhatIsSelected) {
  CaptureSetup setup;
  setup.selection.patterns.push_back(site_pattern("down_proj"));
  setup.selection.layers = {0};
  const Values some = made("some.h5", setup);
  EXPECT_EQ(some.size(), 3U);
  const Values all = made("all.h5", {});
  for (const auto& [name, values] : some) EXPECT_EQ(values, all.at(name)) << name;
  // The head's output, where it is named: its input times the weights.
  CaptureSetup head;
  head.selection.patterns.push_back(site_pattern("lm_head output"));
  const Values logits = made("head.h5", head);
  ASSERT_EQ(logits.size(), 1U);
  const auto& y = logits.at("lm_head output");
  ASSERT_EQ(y.size(), 3U * 40 * 64);
  const auto &x = all.at("lm_head input"), &w = all.at("lm_head.weight");
  double sum = 0;
  for (std::size_t i = 0; i < 32; ++i) sum += double{x[77 * 32 + i]} * double{w[50 * 32 + i]};
  EXPECT_NEAR(sum, y[77 * 64 + 50], 1e-4);
}

TEST_F(CaptureOfTiny, WeightsAloneNeedNoText) {
  CaptureSetup setup;
  setup.selection.activations = false;
  setup.ctx = setup.windows = 0;
  setup.memory = std::int64_t{64} << 20;
  const Values weights = made("w.h5", setup);
  EXPECT_EQ(weights.size(), checkpoint_->tensors().size());
  const Capture capture = Capture::open(dir_ / "w.h5");
  EXPECT_TRUE(capture.sites().empty());
  EXPECT_TRUE(capture.rows().empty());
}

TEST(CaptureRows, AreEveryNthOrSpreadEvenly) {
  using ::testing::ElementsAre;
  EXPECT_THAT(kept_rows(5, {}, {}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(kept_rows(7, 3, {}), ElementsAre(0, 3, 6));
  EXPECT_THAT(kept_rows(6, 3, {}), ElementsAre(0, 3));
  EXPECT_THAT(kept_rows(10, {}, 4), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(kept_rows(3, 9, {}), ElementsAre(0));
  EXPECT_THROW(kept_rows(5, 2, 2), Error);
  EXPECT_THROW(kept_rows(5, 0, {}), Error);
  EXPECT_THROW(kept_rows(5, {}, 6), Error);
  EXPECT_THROW(kept_rows(5, {}, 0), Error);
}

}  // namespace
}  // namespace quantmap
