#include "kernels/emulation/fiber.hpp"

#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace quantmap::emulation {

Fiber::Fiber(boost::context::pooled_fixedsize_stack& stacks, std::function<void()> body)
    : body_(std::move(body)) {
  const boost::context::stack_context stack = stacks.allocate();
  stack_size_ = stack.size;
  stack_bottom_ = static_cast<const char*>(stack.sp) - stack.size;
#if defined(__SANITIZE_THREAD__)
  tsan_self_ = __tsan_create_fiber(0);
#endif
  inside_ =
      boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                            stacks, [this](boost::context::fiber&& caller) {
#if defined(__SANITIZE_ADDRESS__)
                              __sanitizer_finish_switch_fiber(nullptr, &caller_bottom_, &caller_size_);
#endif
                              outside_ = std::move(caller);
                              body_();
                              ended_ = true;
#if defined(__SANITIZE_ADDRESS__)
                              __sanitizer_start_switch_fiber(nullptr, caller_bottom_, caller_size_);
#endif
#if defined(__SANITIZE_THREAD__)
                              __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
                              return std::move(outside_);
                            });
}

Fiber::~Fiber() {
  inside_ = {};  // unwinds what is left on its stack
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(tsan_self_);
#endif
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_bottom_, stack_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  tsan_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_self_, 0);
#endif
  inside_ = std::move(inside_).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::give_way() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_bottom_, caller_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
  outside_ = std::move(outside_).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_bottom_, &caller_size_);
#endif
}

}  // namespace quantmap::emulation
