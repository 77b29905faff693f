// Ctrl-C while long work is under way: it ends after the step that it is in, with what is done kept; a second
// one ends the program at once.
#pragma once

#include <csignal>

namespace quantmap {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

// Whether SIGINT or SIGTERM came since the last guard was made.
bool interrupt_seen();

}  // namespace quantmap
