// `quantmap capture` as a user meets it: one clear line for each mistake, nothing left behind by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "capture/reader.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::run_quantmap;
using testing::RunResult;

class CaptureCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fresh_dir(std::string("capture_cli_") +
                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
    testing::TinyModel model;
    model.dtype = "BF16";
    testing::write_tiny_model(dir_ / "model", model);
    testing::write_file(dir_ / "ids.json", "[[1,2,3,4,5,6,7,8],[9,10,11,12,13,14,15,16]]");
    file_ = dir_ / "f.h5";
  }
  RunResult capture(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"capture", (dir_ / "model").string(), "--output", file_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_quantmap(arguments, dir_.string());
  }
  RunResult capture_ids(std::vector<std::string> more) {
    more.insert(more.begin(), {"--token-ids", (dir_ / "ids.json").string()});
    return capture(std::move(more));
  }
  void refused(const RunResult& result, int status, const std::string& reason) {
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_THAT(result.err, HasSubstr(reason));
    EXPECT_TRUE(result.err.starts_with("quantmap: error: ")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(file_)) << reason;
  }
  fs::path dir_, file_;
};

TEST_F(CaptureCommand, WritesWhatItSays) {
  const RunResult result = capture_ids({"--store", "bf16", "--sites", "down_proj", "--layers", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("1 tensors and 2 sites"));
  EXPECT_THAT(result.err, HasSubstr("3 datasets"));
  std::optional<Capture> opened = Capture::open(file_);
  const Capture& made = *opened;
  EXPECT_THAT(std::vector<std::string>(made.sites().begin(), made.sites().end()),
              ::testing::UnorderedElementsAre("model.layers.1.mlp.down_proj input",
                                              "model.layers.1.mlp.down_proj output"));
  EXPECT_EQ(made.info().selection, "--sites down_proj --layers 1");
  EXPECT_THAT(made.info().command_line, HasSubstr("--store bf16"));
  EXPECT_EQ(made.tokens(1)[0], 9);
  opened.reset();

  const RunResult again = capture_ids({"--store", "bf16", "--sites", "down_proj", "--layers", "1"});
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("it exists (--resume goes on with it"));
  const RunResult resumed =
      capture_ids({"--store", "bf16", "--sites", "down_proj", "--layers", "1", "--resume", "--quiet"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(resumed.err, "");
}

TEST_F(CaptureCommand, RefusesAMistakeBeforeItWritesAnything) {
  refused(run_quantmap({"capture", (dir_ / "model").string(), "--weights-only"}), 2, "no --output given");
  refused(run_quantmap({"capture", "--output", file_.string()}), 2, "no MODEL given");
  refused(capture({}), 2, "give one of --text and --token-ids (--weights-only needs neither)");
  refused(capture_ids({"--weights-only", "--no-weights"}), 2, "leave nothing");
  refused(capture_ids({"--sites", "nowhere"}), 2, "leave nothing");
  refused(capture_ids({"--sites", "("}), 2, "regex");
  refused(capture_ids({"--layers", "2"}), 2, "the model has layers 0 to 1");
  refused(capture_ids({"--store", "fp8"}), 2, "unknown type \"fp8\" (f32, bf16 or f16)");
  refused(capture_ids({"--compress", "10"}), 2, "0 to 9, not 10");
  refused(capture_ids({"--every", "0"}), 2, "--every");
  refused(capture_ids({"--tokens", "9"}), 2, "1 to 8");
  refused(capture_ids({"--every", "2", "--tokens", "2"}), 2, "give one of");
  refused(capture_ids({"--memory", "1K"}), 2, "the least possible is");
  refused(capture_ids({"--windows", "3"}), 3, "fewer windows");
  refused(capture({"--token-ids", (dir_ / "none.json").string()}), 3, "none.json");
  refused(run_quantmap({"capture", (dir_ / "none").string(), "--weights-only", "--output", file_.string()}),
          3, "none: No such file or directory");
}

TEST_F(CaptureCommand, ResumeRefusesWhatIsNotItsOwn) {
  testing::write_file(file_, "a letter");
  const RunResult foreign = capture_ids({"--resume"});
  EXPECT_EQ(foreign.status, 3);
  EXPECT_THAT(foreign.err, HasSubstr(file_.string()));
  EXPECT_THAT(foreign.err, HasSubstr("it does not open"));
  EXPECT_EQ(fs::file_size(file_), 8U);  // untouched
  fs::remove(file_);
  ASSERT_EQ(capture_ids({}).status, 0);
  const RunResult other = capture_ids({"--resume", "--compute", "f32"});
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.err, HasSubstr("begun with another compute (expected \"f32\", found \"bf16\")"));
}

// A file that may not grow, at many sizes: a line with the system's reason, and what was complete is kept.
TEST_F(CaptureCommand, AFullDiskLosesNothingThatWasComplete) {
  if (testing::run({"bash", "-c", "ulimit -f 8"}).status != 0) GTEST_SKIP() << "needs bash";
  ASSERT_EQ(capture_ids({}).status, 0);
  const auto whole = static_cast<long>(fs::file_size(file_) / 1024);
  int failures = 0;
  for (long limit = 1; limit < whole; limit += std::max(1L, whole / 12)) {
    fs::remove(file_);
    const std::string command = "ulimit -f " + std::to_string(limit) + "; exec \"$0\" \"$@\"";
    const auto limited = [&](bool resume) {
      std::vector<std::string> words = {"bash",        "-c",
                                        command,       QUANTMAP_BINARY,
                                        "capture",     (dir_ / "model").string(),
                                        "--token-ids", (dir_ / "ids.json").string(),
                                        "--output",    file_.string(),
                                        "--quiet"};
      if (resume) words.emplace_back("--resume");
      return testing::run(words);
    };
    const RunResult full = limited(false);
    EXPECT_EQ(full.status, 1) << limit << full.err;
    EXPECT_THAT(full.err, HasSubstr("File too large"));
    EXPECT_THAT(full.err, HasSubstr("f.h5"));
    EXPECT_EQ(std::count(full.err.begin(), full.err.end(), '\n'), 1) << full.err;
    ++failures;
    const RunResult resumed = capture_ids({"--resume", "--quiet"});
    EXPECT_EQ(resumed.status, 0) << limit << resumed.err;
    EXPECT_NO_THROW(Capture::open(file_)) << limit;
  }
  EXPECT_GE(failures, 8);
}

}  // namespace
}  // namespace quantmap
