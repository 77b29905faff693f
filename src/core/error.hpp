// Errors: one class, one line (control characters and invalid UTF-8 in what is passed here come out as \xNN).
// The text is `WHAT: FILE: DETAIL (expected …, found …)`; the app prints it after `quantmap: error: ` and
// exits with the kind's status. Nothing else is thrown on purpose.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace quantmap {

// The values are the exit statuses of product.md.
enum class ErrorKind {
  failed = 1,  // something that should have worked did not (I/O, memory, database in use)
  usage = 2,   // wrong command line, a scheme that cannot be parsed, a method that is not built
  input = 3,   // an input file that cannot be used
  interrupted = 130,
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& line) : std::runtime_error(line), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_status() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// `what: file: detail`; empty parts are left out.
[[noreturn]] void fail_input(std::string_view what, std::string_view file, std::string_view detail);
// `what: file: detail (expected …, found …)`
[[noreturn]] void fail_input(std::string_view what, std::string_view file, std::string_view detail,
                             std::string_view expected, std::string_view found);
[[noreturn]] void fail_usage(std::string_view what, std::string_view detail);
[[noreturn]] void fail(std::string_view what, std::string_view file, std::string_view detail);

// Valid UTF-8 without control characters (C0, DEL, C1, line and paragraph separators).
bool is_plain_text(std::string_view text);

// Text from a file or the command line, made safe to print on one line of an error: control characters and
// invalid UTF-8 escaped as \xNN, quoted, cut after `limit` bytes.
std::string quoted(std::string_view text, std::size_t limit = 80);
// Overloads as exact as std::quoted's (of <iomanip>), which argument-dependent lookup would find otherwise.
inline std::string quoted(const std::string& text, std::size_t limit = 80) {
  return quoted(std::string_view(text), limit);
}
inline std::string quoted(std::string& text, std::size_t limit = 80) {
  return quoted(std::string_view(text), limit);
}
inline std::string quoted(const char* text, std::size_t limit = 80) {
  return quoted(std::string_view(text), limit);
}

}  // namespace quantmap
