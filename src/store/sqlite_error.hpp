// SQLite's error codes as errors of quantmap: each names the file, and says whose fault it is (`input`: the
// file cannot be used as results; `failed`: in use, or the disk refused).
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <string_view>
#include <utility>

namespace quantmap::store {

inline constexpr const char* kResults = "results database";
inline constexpr int kBusyTimeoutMs = 5000;

[[noreturn]] void fail_sqlite(const SQLite::Exception& error, const std::string& file);

// SQLite's messages repeat parts of the statement: control characters become spaces, so that an error is one
// line.
std::string one_line(std::string_view text);

// work(), whose SQLite errors become errors of quantmap.
template <class Work>
auto guarded(const std::string& file, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const SQLite::Exception& error) {
    fail_sqlite(error, file);
  }
}

}  // namespace quantmap::store
