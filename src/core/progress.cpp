#include "core/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace quantmap {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenDraws = 100ms;
constexpr int kBarWidth = 24;

int terminal_width(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void print(int descriptor, std::string_view text) {
  // A bar that cannot be drawn is no reason to fail.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

std::string clock_text(double seconds) {
  const auto total = std::int64_t{std::llround(std::min(seconds, 359999.0))};
  const std::int64_t hours = total / 3600, minutes = total / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60)
                   : fmt::format("{:02}:{:02}", minutes, total % 60);
}

std::string rate_text(double rate) {
  return rate >= 100 ? fmt::format("{:.0f}/s", rate)
         : rate >= 1 ? fmt::format("{:.1f}/s", rate)
                     : fmt::format("{:.3f}/s", rate);
}

}  // namespace

std::string progress_line(const ProgressOptions& options, std::int64_t done, double seconds, int width) {
  std::string line = options.label;
  const std::int64_t total = options.total;
  if (total > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    line += fmt::format(" [{}{}] {:.0f}% {}/{}", std::string(filled, '#'),
                        std::string(kBarWidth - filled, '-'), std::floor(share * 100), done, total);
  } else {
    line += fmt::format(" {}", done);
  }
  if (!options.unit.empty()) line += fmt::format(" {}", options.unit);
  const std::int64_t fresh = done - options.already;
  if (fresh > 0 && seconds > 0) {
    const double rate = static_cast<double>(fresh) / seconds;
    line += fmt::format(" {}", rate_text(rate));
    if (total > 0)
      line += fmt::format(" {} left",
                          clock_text(static_cast<double>(std::max<std::int64_t>(total - done, 0)) / rate));
  }
  // A line that wraps could not be taken back. Labels are ASCII; a cut inside a character would be drawn over
  // anyway.
  if (width > 0 && line.size() > static_cast<std::size_t>(width))
    line.resize(static_cast<std::size_t>(width));
  return line;
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      visible_(!options_.quiet && ::isatty(options_.descriptor) == 1),
      start_(Clock::now()),
      done_(options_.already) {}

Progress::~Progress() { clear(); }

void Progress::advance(std::int64_t count) {
  done_.fetch_add(count, std::memory_order_relaxed);
  if (!visible_) return;
  const Clock::rep now = (Clock::now() - start_).count();
  Clock::rep due = next_draw_.load(std::memory_order_relaxed);
  const Clock::rep next = now + Clock::duration(kBetweenDraws).count();
  if (now >= due && next_draw_.compare_exchange_strong(due, next, std::memory_order_relaxed)) draw();
}

void Progress::show_share(double share) {
  const auto done = static_cast<std::int64_t>(static_cast<double>(options_.total) * share);
  advance(done - done_.load(std::memory_order_relaxed));
}

void Progress::set_label(std::string label) {
  const std::lock_guard lock(mutex_);
  options_.label = std::move(label);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_) print(options_.descriptor, "\r\x1b[K");
  drawn_ = false;
}

void Progress::draw() {
  const std::lock_guard lock(mutex_);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string line = progress_line(options_, done_.load(std::memory_order_relaxed), seconds,
                                         terminal_width(options_.descriptor) - 1);
  print(options_.descriptor, fmt::format("\r{}\x1b[K", line));
  drawn_ = true;
}

}  // namespace quantmap
