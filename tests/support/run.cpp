#include "support/run.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace quantmap::testing {
namespace {

// Output goes to unlinked temporary files: no pipe can fill up and block the child.
std::FILE* temporary() {
  std::FILE* file = std::tmpfile();
  if (!file) throw std::runtime_error("no temporary file");
  return file;
}

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  std::fclose(file);
  return text;
}

}  // namespace

RunResult run(const std::vector<std::string>& command, const std::string& directory) {
  std::FILE* out = temporary();
  std::FILE* err = temporary();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::dup2(::fileno(out), 1);
    ::dup2(::fileno(err), 2);
    if (!directory.empty() && ::chdir(directory.c_str()) != 0) ::_exit(126);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  RunResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = contents(out);
  result.err = contents(err);
  return result;
}

Ended run_and_signal(std::vector<std::string> arguments, std::chrono::milliseconds delay, int number) {
  arguments.insert(arguments.begin(), QUANTMAP_BINARY);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  std::this_thread::sleep_for(delay);
  ::kill(child, number);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFSIGNALED(status), WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

RunResult run_quantmap(std::vector<std::string> arguments, const std::string& directory) {
  arguments.insert(arguments.begin(), QUANTMAP_BINARY);
  return run(arguments, directory);
}

}  // namespace quantmap::testing
