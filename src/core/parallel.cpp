#include "core/parallel.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace quantmap {
namespace {

thread_local int current_worker = -1;

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

class Pool {
 public:
  explicit Pool(int count) : count_(count) {
    for (int worker = 1; worker < count; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int count() const { return count_; }

  void run(std::int64_t tasks, const std::function<void(std::int64_t, int)>& body) {
    {
      const std::lock_guard lock(mutex_);
      body_ = &body;
      tasks_ = tasks;
      next_ = 0;
      active_ = static_cast<int>(threads_.size());
      error_ = nullptr;
      ++generation_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return active_ == 0; });
    body_ = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void serve(int worker) {
    std::uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
        if (stopping_) return;
        seen = generation_;
      }
      work(worker);
      const std::lock_guard lock(mutex_);
      if (--active_ == 0) done_.notify_one();
    }
  }

  void work(int worker) {
    omp_set_num_threads(1);  // oneDNN stays on this thread
    current_worker = worker;
    for (;;) {
      const std::int64_t index = next_.fetch_add(1);
      if (index >= tasks_) break;
      try {
        (*body_)(index, worker);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_ = tasks_;
      }
    }
    current_worker = -1;
  }

  const int count_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t tasks_ = 0;
  std::atomic<std::int64_t> next_{0};
  int active_ = 0;
  std::uint64_t generation_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
};

int wanted = 0;
std::unique_ptr<Pool>& pool() {
  static std::unique_ptr<Pool> instance;
  return instance;
}

}  // namespace

void set_thread_count(int count) {
  wanted = count;
  pool().reset();
}

int thread_count() { return wanted > 0 ? wanted : usable_processors(); }

void parallel_for(std::int64_t count, const std::function<void(std::int64_t, int)>& body) {
  if (count <= 0) return;
  if (current_worker >= 0) {
    for (std::int64_t index = 0; index < count; ++index) body(index, current_worker);
    return;
  }
  if (!pool()) pool() = std::make_unique<Pool>(thread_count());
  pool()->run(count, body);
}

}  // namespace quantmap
