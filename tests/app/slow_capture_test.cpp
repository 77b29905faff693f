// kill -9 and Ctrl-C at random moments of a capture: it goes on, and ends with the values of an unbroken one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "capture/page_journal.hpp"
#include "capture/reader.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;
using testing::demo_dir;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::run_and_signal;
using testing::run_quantmap;

std::vector<std::string> capture(const fs::path& file, std::vector<std::string> more = {},
                                 const std::string& windows = "12") {
  std::vector<std::string> arguments = {"capture",   demo_dir().string(),
                                        "--text",    (demo_dir() / "text.txt").string(),
                                        "--ctx",     "128",
                                        "--output",  file.string(),
                                        "--windows", windows,
                                        "--quiet",   "--memory",
                                        "40M"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_same(const fs::path& a, const fs::path& b) {
  const Capture left = Capture::open(a), right = Capture::open(b);
  ASSERT_EQ(left.sites().size(), right.sites().size());
  ASSERT_EQ(left.tensors().size(), right.tensors().size());
  const auto rows = static_cast<std::int64_t>(left.rows().size());
  const auto compare = [&](const std::string& name, std::size_t count, const auto& read) {
    std::vector<float> x(count), y(count);
    read(left, x.data());
    read(right, y.data());
    EXPECT_EQ(std::memcmp(x.data(), y.data(), count * sizeof(float)), 0) << name;
  };
  for (const std::string& site : left.sites())
    for (std::int64_t w = 0; w < left.info().windows; ++w)
      compare(site, static_cast<std::size_t>(rows * left.width(site)),
              [&](const Capture& c, float* out) { c.read_rows(site, w, 0, rows, out); });
  for (const TensorEntry& t : left.tensors()) {
    const std::int64_t count = t.shape.size() == 2 ? t.shape[0] : 1;
    compare(t.name, static_cast<std::size_t>(count * t.shape.back()),
            [&](const Capture& c, float* out) { c.read(t.name, 0, count, out); });
  }
}

TEST(CaptureInterrupted, KillsAtRandomMomentsChangeNoBit) {
  const auto dir = fresh_dir("capture_kill");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_quantmap(capture(dir / "whole.h5", {"--compress", "1"})).status, 0);
  const auto whole =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  SplitMix64 random(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  const fs::path file = dir / "killed.h5";
  int kills = 0;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const auto delay =
        std::chrono::milliseconds(1 + random.next() % static_cast<std::uint64_t>(whole.count() / 4 + 1));
    const testing::Ended ended =
        run_and_signal(capture(file, {"--compress", "1", "--resume"}), delay, SIGKILL);
    kills += ended.by_signal ? 1 : 0;
    if (!fs::exists(file) || !ended.by_signal) continue;
    // Refused by name until it is whole, never read as if it were.
    try {
      Capture::open(file);
      EXPECT_GT(attempt, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(file.string()));
    }
    // Other readers open it too, but for the moment of a commit.
    if (fs::file_size(file) > 0 && !fs::exists(journal_path(file))) {
      EXPECT_EQ(testing::run({"h5ls", file.string()}).status, 0) << "h5ls";
    }
  }
  EXPECT_GE(kills, 4);
  const testing::RunResult last = run_quantmap(capture(file, {"--compress", "1", "--resume"}));
  ASSERT_EQ(last.status, 0) << last.err;
  expect_same(file, dir / "whole.h5");
}

TEST(CaptureInterrupted, ControlCEndsBehindALayerWithStatus130) {
  const auto dir = fresh_dir("capture_int");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_quantmap(capture(dir / "whole.h5", {"--compress", "1"})).status, 0);
  const auto whole =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  const fs::path file = dir / "stopped.h5";
  int stops = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const testing::Ended ended =
        run_and_signal(capture(file, {"--compress", "1", "--resume"}), whole * (attempt + 2) / 6, SIGINT);
    EXPECT_FALSE(ended.by_signal);
    EXPECT_TRUE(ended.status == 130 || ended.status == 0) << ended.status;
    EXPECT_FALSE(fs::exists(journal_path(file)));
    stops += ended.status == 130 ? 1 : 0;
  }
  EXPECT_GE(stops, 1);
  ASSERT_EQ(run_quantmap(capture(file, {"--compress", "1", "--resume"})).status, 0);
  expect_same(file, dir / "whole.h5");
}

// A capture larger than its bound streams: the peak is the bound, the mapped model and the program.
TEST(CaptureMemory, IsBoundedWhateverTheFileHolds) {
  const auto dir = fresh_dir("capture_memory");
  const auto peak_of = [&](std::vector<std::string> arguments) {
    std::vector<std::string> timed = {"python3", "-c",
                                      "import resource,subprocess,sys\n"
                                      "subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,check=True)\n"
                                      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                                      QUANTMAP_BINARY};
    timed.insert(timed.end(), arguments.begin(), arguments.end());
    const testing::RunResult result = testing::run(timed);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.status == 0 ? std::stoll(result.out) / 1024 : -1;
  };
  if (testing::run({"python3", "-c", ""}).status != 0) GTEST_SKIP() << "needs python3";
  constexpr std::int64_t kBound = 40;
  const long long bare = peak_of({"formats"});
  const long long peak = peak_of(capture(dir / "a.h5", {"--no-weights"}, "120"));
  const auto file = static_cast<long long>(fs::file_size(dir / "a.h5") >> 20);
  const auto mapped = static_cast<long long>(fs::file_size(demo_dir() / "model.safetensors") >> 20);
  std::printf("peak %lld MiB: bound %lld, file %lld, mapped model %lld, program alone %lld\n", peak,
              static_cast<long long>(kBound), file, mapped, bare);
  EXPECT_GT(file, 5 * kBound);
  EXPECT_LE(peak, kBound + mapped + bare + 40);  // tokenizer, text, compiled kernels, HDF5's metadata
}

}  // namespace
}  // namespace quantmap
