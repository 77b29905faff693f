// A progress bar on stderr: done and total, rate, time left. Only on a terminal and unless quiet; elsewhere
// it prints nothing. Redrawn at most ten times a second, and taken off the screen when it is destroyed, so
// that results and errors start on a clean line.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace quantmap {

struct ProgressOptions {
  std::string label = {};    // what is going on: `layer 3 of 30`
  std::string unit = {};     // what is counted: `tokens`
  std::int64_t total = 0;    // 0: not known
  std::int64_t already = 0;  // done before (a resumed run): in the bar, not in the rate
  bool quiet = false;
  int descriptor = 2;  // where the bar goes
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `count` more are done. May be called from several threads; costs an atomic addition but for ten times a
  // second.
  void advance(std::int64_t count = 1);
  // `share` of the total is done, for work that measures itself in its own unit; from one thread at a time.
  void show_share(double share);
  void set_label(std::string label);
  // Takes the bar off the screen (also before something else is printed; the next advance may draw it again).
  void clear();
  bool visible() const { return visible_; }

 private:
  void draw();

  using Clock = std::chrono::steady_clock;
  ProgressOptions options_;
  bool visible_ = false;
  Clock::time_point start_;
  std::atomic<std::int64_t> done_{0};
  std::atomic<Clock::rep> next_draw_{0};  // since start_
  std::mutex mutex_;                      // the screen and the label
  bool drawn_ = false;
};

// The line itself, at most `width` columns: `label [######----] 40% 1200/3000 tokens 85.3/s 00:21 left`.
// `seconds`: since the start. Rate and time left are left out until something was done.
std::string progress_line(const ProgressOptions& options, std::int64_t done, double seconds, int width);

}  // namespace quantmap
