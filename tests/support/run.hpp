// Runs the quantmap binary (or another command) as a user would: arguments, output, exit status.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace quantmap::testing {

struct RunResult {
  int status = -1;  // exit status; 128 + signal where it was killed
  std::string out, err;
};

// No shell is involved. `directory`: where it runs; empty: here.
RunResult run(const std::vector<std::string>& command, const std::string& directory = "");
// The binary under test with these arguments.
RunResult run_quantmap(std::vector<std::string> arguments, const std::string& directory = "");

struct Ended {
  bool by_signal = false;
  int status = 0;  // as in RunResult
};
// Starts the binary under test, its output thrown away, and sends it a signal after the delay.
Ended run_and_signal(std::vector<std::string> arguments, std::chrono::milliseconds delay, int number);

}  // namespace quantmap::testing
