// A fiber on Boost.Context that tells the sanitizers of each switch.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <functional>

namespace quantmap::emulation {

class Fiber {
 public:
  // Nothing runs before the first resume(). body must outlive the fiber and let forced unwinding pass.
  Fiber(boost::context::pooled_fixedsize_stack& stacks, std::function<void()> body);
  Fiber(Fiber&&) = delete;
  ~Fiber();

  void resume();  // until the fiber gives way or ends
  void give_way();
  bool ended() const { return ended_; }

 private:
  std::function<void()> body_;
  boost::context::fiber inside_, outside_;
  bool ended_ = false;
  const void* stack_bottom_ = nullptr;
  std::size_t stack_size_ = 0;
  const void* caller_bottom_ = nullptr;
  std::size_t caller_size_ = 0;
  void* own_fake_stack_ = nullptr;
  void* tsan_self_ = nullptr;
  void* tsan_caller_ = nullptr;
};

}  // namespace quantmap::emulation
