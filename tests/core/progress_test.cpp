#include "core/progress.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace quantmap {
namespace {

TEST(Progress, LineShowsShareRateAndTimeLeft) {
  const ProgressOptions options{.label = "layer 3 of 30", .unit = "tokens", .total = 3000};
  EXPECT_EQ(progress_line(options, 0, 0, 200), "layer 3 of 30 [------------------------] 0% 0/3000 tokens");
  EXPECT_EQ(progress_line(options, 1200, 12, 200),
            "layer 3 of 30 [#########---------------] 40% 1200/3000 tokens 100/s 00:18 left");
  EXPECT_EQ(
      progress_line(options, 2999, 12, 200),
      "layer 3 of 30 [#######################-] 99% 2999/3000 tokens 250/s 00:00 left");  // not 100 % before
                                                                                          // it is
  EXPECT_EQ(progress_line(options, 3000, 12, 200),
            "layer 3 of 30 [########################] 100% 3000/3000 tokens 250/s 00:00 left");
  EXPECT_EQ(progress_line(options, 3001, 12, 200).find("-1"), std::string::npos);  // more than was foreseen
  EXPECT_EQ(progress_line(options, 1, 4, 200),
            "layer 3 of 30 [------------------------] 0% 1/3000 tokens 0.250/s 3:19:56 left");
}

TEST(Progress, WorkDoneBeforeIsNotInTheRate) {
  const ProgressOptions options{.label = "resumed", .unit = "", .total = 100, .already = 50};
  EXPECT_EQ(progress_line(options, 50, 10, 200), "resumed [############------------] 50% 50/100");
  EXPECT_EQ(progress_line(options, 60, 10, 200),
            "resumed [##############----------] 60% 60/100 1.0/s 00:40 left");
}

TEST(Progress, UnknownTotalShowsTheCount) {
  EXPECT_EQ(progress_line({.label = "hashing", .unit = "MiB"}, 30, 2, 200), "hashing 30 MiB 15.0/s");
}

TEST(Progress, LineNeverWraps) {
  const ProgressOptions options{.label = "a label", .unit = "tokens", .total = 10};
  for (int width = 1; width < 100; ++width)
    EXPECT_LE(progress_line(options, 5, 1, width).size(), static_cast<std::size_t>(width));
}

// A terminal of our own: what is written to `terminal` can be read from `screen`.
class Terminal : public ::testing::Test {
 protected:
  void SetUp() override {
    screen_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (screen_ < 0 || ::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0)
      GTEST_SKIP() << "needs a pseudo-terminal";
    terminal_ = ::open(::ptsname(screen_), O_RDWR | O_NOCTTY);
    if (terminal_ < 0) GTEST_SKIP() << "needs a pseudo-terminal";
    const winsize size{24, 60, 0, 0};
    ::ioctl(terminal_, TIOCSWINSZ, &size);
  }
  void TearDown() override {
    if (terminal_ >= 0) ::close(terminal_);
    if (screen_ >= 0) ::close(screen_);
  }
  std::string shown() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(screen_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }

  int screen_ = -1, terminal_ = -1;
};

TEST_F(Terminal, ShowsTheBarAtMostTenTimesASecondAndTakesItOff) {
  const auto start = std::chrono::steady_clock::now();
  {
    Progress progress({.label = "work", .unit = "tokens", .total = 400000, .descriptor = terminal_});
    EXPECT_TRUE(progress.visible());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 100000; ++i) progress.advance();
      });
    for (std::thread& thread : threads) thread.join();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string text = shown();
  std::size_t draws = 0;
  for (std::size_t at = 0; (at = text.find("work [", at)) != std::string::npos; ++at) ++draws;
  EXPECT_GE(draws, 1U);
  EXPECT_LE(static_cast<double>(draws), seconds * 10 + 1);
  EXPECT_EQ(text.substr(text.size() - 4), "\r\x1b[K") << "the bar stays on the screen";
  for (std::size_t begin = 0; begin < text.size();) {  // every drawing fits a line of 60 columns
    const std::size_t end = std::min(text.find('\r', begin), text.size());
    EXPECT_LE(end - begin, 60U + 3U);
    begin = end + 1;
  }
}

TEST_F(Terminal, QuietShowsNothing) {
  {
    Progress progress({.label = "work", .total = 10, .quiet = true, .descriptor = terminal_});
    EXPECT_FALSE(progress.visible());
    progress.advance(10);
  }
  EXPECT_EQ(shown(), "");
}

TEST(Progress, NothingIsPrintedWhereThereIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  {
    Progress progress({.label = "work", .total = 10, .descriptor = ends[1]});
    progress.advance(10);
    progress.set_label("more");
    progress.clear();
  }
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace quantmap
