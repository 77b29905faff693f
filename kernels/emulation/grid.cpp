#include "kernels/emulation/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "kernels/emulation/fiber.hpp"
#include "kernels/emulation/memory.hpp"

namespace quantmap::emulation {
namespace {

std::atomic<std::uint64_t> order_seed{0};  // 0: in order

// What a thread waits for.
enum class Waits : std::uint8_t { nothing, block, warp };

struct Thread {
  std::unique_ptr<Fiber> fiber;
  Waits waits = Waits::nothing;
  std::source_location at;
  unsigned mask = 0;        // warp
  std::uint64_t given = 0;  // to the lanes of its mask
  std::int32_t round = 0, step = 0;
};

std::string place(const std::source_location& at) {
  const std::string file = at.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), at.line());
}
bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && std::string_view(a.file_name()) == b.file_name();
}

// A block in flight; one at a time on a thread of the host.
class Block {
 public:
  Block(const GridAt& grid, dim3 block, Index3 index, std::int64_t shared_bytes,
        const std::function<void()>& body);
  void run();

  int lane() const { return current_ % kWarp; }
  Moment now() const {
    const Thread& t = threads_[static_cast<std::size_t>(current_)];
    return {current_, t.round, t.step};
  }
  void wait_for_block(const std::source_location& at) {
    wait(Waits::block, 0, at);
    ++self().round;
  }
  void wait_for_warp(unsigned mask, const std::source_location& at) { wait(Waits::warp, mask, at); }
  void count_step() { ++self().step; }
  void give(std::uint64_t value) { self().given = value; }
  std::uint64_t received(int from) const {
    return exchanged_[static_cast<std::size_t>(current_ / kWarp * kWarp + from)];
  }
  SharedExtent shared(const void* key, std::int64_t bytes, std::int64_t alignment);
  SharedExtent dynamic(std::int64_t offset, std::int64_t bytes);
  [[noreturn]] void fail(const std::string& what) const {
    ::quantmap::fail("emulation", place(grid_.at), fmt::format("{}, {}", what, who(current_)));
  }

 private:
  Thread& self() { return threads_[static_cast<std::size_t>(current_)]; }
  Index3 index_of(int thread) const {
    const auto t = static_cast<unsigned>(thread);
    return {t % size_.x, t / size_.x % size_.y, t / size_.x / size_.y};
  }
  std::string who(int thread) const {
    const Index3 t = index_of(thread);
    return fmt::format("thread ({},{},{}) of block ({},{},{})", t.x, t.y, t.z, index_.x, index_.y, index_.z);
  }
  void wait(Waits what, unsigned mask, const std::source_location& at);
  void take_turns();
  bool release_warps();
  bool release_block();
  std::string why_stuck() const;

  struct Variable {
    const void* key;
    std::int64_t bytes;
    std::unique_ptr<std::byte[]> data;
    std::unique_ptr<Touched[]> touched;
  };
  Variable variable(const void* key, std::int64_t bytes) {
    return {key, bytes, std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)),
            std::make_unique<Touched[]>(static_cast<std::size_t>(bytes))};
  }

  const GridAt& grid_;
  Index3 size_, index_;
  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  std::vector<std::uint64_t> exchanged_;
  std::vector<int> order_;
  SplitMix64 random_;
  std::exception_ptr error_;
  std::deque<Variable> shared_;  // that of key null is the launch's
  std::int64_t shared_total_ = 0;
  int current_ = 0;
};

thread_local Block* running = nullptr;

constexpr std::size_t kStackBytes = 64 * 1024;
boost::context::pooled_fixedsize_stack& stacks() {
  static thread_local boost::context::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

Block::Block(const GridAt& grid, dim3 block, Index3 index, std::int64_t shared_bytes,
             const std::function<void()>& body)
    : grid_(grid),
      size_{block.x, block.y, block.z},
      index_(index),
      body_(body),
      threads_(std::size_t{block.x} * block.y * block.z),
      exchanged_(threads_.size()),
      order_(threads_.size()),
      random_(order_seed + index.x + 1000003ULL * index.y) {
  shared_.push_back(variable(nullptr, shared_bytes));
  shared_total_ = shared_bytes;
  for (std::size_t t = 0; t < order_.size(); ++t) order_[t] = static_cast<int>(t);
}

void Block::run() {
  blockIdx = index_;
  blockDim = size_;
  gridDim = {grid_.size.x, grid_.size.y, grid_.size.z};
  running = this;
  const auto guarded = [this] {
    try {
      body_();
    } catch (const Error&) {
      if (!error_) error_ = std::current_exception();
    }
  };
  for (Thread& thread : threads_) thread.fiber = std::make_unique<Fiber>(stacks(), guarded);
  for (;;) {
    take_turns();
    if (error_) break;
    if (std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.fiber->ended(); }))
      break;
    const bool warps = release_warps();
    if (!warps && !release_block()) {
      error_ = std::make_exception_ptr(
          Error(ErrorKind::failed, fmt::format("emulation: {}: {}", place(grid_.at), why_stuck())));
      break;
    }
  }
  for (Thread& thread : threads_) thread.fiber.reset();
  running = nullptr;
  if (error_) std::rethrow_exception(error_);
}

// Each thread that waits for nothing runs until it does.
void Block::take_turns() {
  if (order_seed != 0)
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.next() % i]);
  for (const int t : order_) {
    Thread& thread = threads_[static_cast<std::size_t>(t)];
    if (thread.fiber->ended() || thread.waits != Waits::nothing) continue;
    current_ = t;
    threadIdx = index_of(t);
    thread.fiber->resume();
    if (error_) return;
  }
}

void Block::wait(Waits what, unsigned mask, const std::source_location& at) {
  Thread& thread = self();
  thread.waits = what;
  thread.mask = mask;
  thread.at = at;
  thread.fiber->give_way();
}

// Lets those lanes go on whose whole mask waits at one place, with one mask.
bool Block::release_warps() {
  bool any = false;
  const auto count = static_cast<int>(threads_.size());
  for (int t = 0; t < count; ++t) {
    const Thread& thread = threads_[static_cast<std::size_t>(t)];
    if (thread.waits != Waits::warp) continue;
    const int first = t / kWarp * kWarp;
    bool all = true;
    for (int l = 0; l < kWarp && all; ++l) {
      if (!(thread.mask >> l & 1U)) continue;
      if (first + l >= count) {
        all = false;
        continue;
      }
      const Thread& other = threads_[static_cast<std::size_t>(first + l)];
      all = other.waits == Waits::warp && other.mask == thread.mask && same_place(other.at, thread.at);
    }
    if (!all) continue;
    const unsigned mask = thread.mask;
    for (int l = 0; l < kWarp; ++l) {
      if (!(mask >> l & 1U)) continue;
      const auto other = static_cast<std::size_t>(first + l);
      exchanged_[other] = threads_[other].given;
      threads_[other].waits = Waits::nothing;
    }
    any = true;
  }
  return any;
}

bool Block::release_block() {
  for (const Thread& thread : threads_)
    if (thread.fiber->ended() || thread.waits != Waits::block || !same_place(thread.at, threads_[0].at))
      return false;
  for (Thread& thread : threads_) thread.waits = Waits::nothing;
  return true;
}

std::string Block::why_stuck() const {
  const auto waiting =
      std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return !t.fiber->ended(); });
  const auto same = std::count_if(threads_.begin(), threads_.end(), [&](const Thread& t) {
    return !t.fiber->ended() && t.waits == waiting->waits && same_place(t.at, waiting->at);
  });
  const auto ended =
      std::count_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.fiber->ended(); });
  return fmt::format("{} at {} not reached by all: {} of {} threads wait there, {} have ended, {}",
                     waiting->waits == Waits::block ? "a barrier" : "a warp's collective", place(waiting->at),
                     same, threads_.size(), ended, who(static_cast<int>(waiting - threads_.begin())));
}

SharedExtent Block::shared(const void* key, std::int64_t bytes, std::int64_t alignment) {
  auto found = std::find_if(shared_.begin(), shared_.end(), [&](const Variable& v) { return v.key == key; });
  if (found == shared_.end()) {
    shared_total_ = (shared_total_ + alignment - 1) / alignment * alignment + bytes;
    if (shared_total_ > kMostShared)
      fail(fmt::format("{} bytes of shared memory, a block has {}", shared_total_, kMostShared));
    shared_.push_back(variable(key, bytes));
    found = shared_.end() - 1;
  }
  return {found->data.get(), found->touched.get(), found->bytes};
}

SharedExtent Block::dynamic(std::int64_t offset, std::int64_t bytes) {
  const Variable& whole = shared_.front();
  if (offset < 0 || bytes < 0 || offset + bytes > whole.bytes)
    fail(fmt::format("bytes {} to {} of dynamic shared memory, the launch has {}", offset, offset + bytes,
                     whole.bytes));
  return {whole.data.get() + offset, whole.touched.get() + offset, bytes};
}

}  // namespace

void run_grid(const GridAt& grid, dim3 block, std::int64_t shared_bytes, const std::function<void()>& body) {
  const std::int64_t threads = std::int64_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > kMostThreads)
    fail("emulation", place(grid.at),
         fmt::format("{} threads in a block (expected 1 to {})", threads, kMostThreads));
  if (shared_bytes < 0 || shared_bytes > kMostShared)
    fail("emulation", place(grid.at),
         fmt::format("{} bytes of shared memory, a block has {}", shared_bytes, kMostShared));
  const std::int64_t blocks = std::int64_t{grid.size.x} * grid.size.y * grid.size.z;
  const std::uint64_t seed = order_seed;
  parallel_for(blocks, [&](std::int64_t i, int) {
    // Any order of blocks is allowed; backwards is the one that linear code least expects.
    const auto b = static_cast<unsigned>(seed % 2 ? blocks - 1 - i : i);
    const Index3 index{b % grid.size.x, b / grid.size.x % grid.size.y, b / grid.size.x / grid.size.y};
    Block(grid, block, index, shared_bytes, body).run();
  });
}

ShuffledOrder::ShuffledOrder(std::uint64_t seed) { order_seed = seed; }
ShuffledOrder::~ShuffledOrder() { order_seed = 0; }

int lane() { return running->lane(); }
Moment now() { return running->now(); }

void block_barrier(std::source_location at) { running->wait_for_block(at); }

void warp_barrier(unsigned mask, std::source_location at) {
  exchange(mask, 0, lane(), at);
  running->count_step();
}

std::uint64_t exchange(unsigned mask, std::uint64_t value, int from, std::source_location at) {
  if (!(mask >> lane() & 1U))
    running->fail(fmt::format("{}: the mask {:#x} lacks lane {} itself", place(at), mask, lane()));
  if (from < 0 || from >= kWarp || !(mask >> from & 1U))
    running->fail(fmt::format("{}: a value from lane {}, which the mask {:#x} lacks", place(at), from, mask));
  running->give(value);
  running->wait_for_warp(mask, at);
  return running->received(from);
}

unsigned ballot(unsigned mask, bool predicate, std::source_location at) {
  exchange(mask, predicate ? 1 : 0, lane(), at);
  unsigned votes = 0;
  for (int l = 0; l < kWarp; ++l)
    if (mask >> l & 1U) votes |= static_cast<unsigned>(running->received(l) & 1U) << l;
  return votes;
}

void fail_in_kernel(const char* what, std::int64_t index, std::int64_t count) {
  const std::string detail = fmt::format("index {} of {} values of {}", index, count, what);
  if (running) running->fail(detail);
  fail("emulation", "", detail);
}

SharedExtent shared_memory(const void* key, std::int64_t bytes, std::int64_t alignment) {
  return running->shared(key, bytes, alignment);
}
SharedExtent dynamic_shared_memory(std::int64_t offset, std::int64_t bytes) {
  return running->dynamic(offset, bytes);
}

namespace {

bool unordered(const Moment& before, const Moment& at) {
  if (before.thread < 0 || before.thread == at.thread || before.round != at.round) return false;
  return before.thread / kWarp != at.thread / kWarp || before.step == at.step;
}

}  // namespace

void note_read(Touched& touched, std::int64_t index) {
  const Moment at = now();
  if (touched.written.thread < 0)
    running->fail(fmt::format("value {} of shared memory is read before it is written", index));
  if (unordered(touched.written, at))
    running->fail(
        fmt::format("a race: value {} of shared memory is read where thread {} wrote it, with no "
                    "barrier in between",
                    index, touched.written.thread));
  // The two readers that a later writer is most likely to be in no order with: of different warps.
  if (touched.read.thread >= 0 && touched.read.thread != at.thread &&
      (touched.read.thread / kWarp != at.thread / kWarp || touched.read_too.round != at.round))
    touched.read_too = touched.read;
  touched.read = at;
}

void note_write(Touched& touched, std::int64_t index) {
  const Moment at = now();
  for (const Moment* other : {&touched.written, &touched.read, &touched.read_too})
    if (unordered(*other, at))
      running->fail(
          fmt::format("a race: value {} of shared memory is written where thread {} {} it, with no "
                      "barrier in between",
                      index, other->thread, other == &touched.written ? "wrote" : "read"));
  touched.written = at;
}

}  // namespace quantmap::emulation
