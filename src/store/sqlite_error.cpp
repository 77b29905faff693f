#include "store/sqlite_error.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <fstream>

#include "core/error.hpp"

namespace quantmap::store {
namespace {

std::string first_bytes(const std::string& file) {
  std::string head(16, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  return head;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return line;
}

void fail_sqlite(const SQLite::Exception& error, const std::string& file) {
  switch (error.getErrorCode()) {
    case SQLITE_NOTADB:
      fail_input(kResults, file, "not a database", "a SQLite database of quantmap",
                 "a file that begins with " + quoted(first_bytes(file)));
    case SQLITE_CORRUPT:
      fail_input(kResults, file, "damaged", "a whole SQLite database", one_line(error.what()));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail(kResults, file,
           fmt::format("in use by another process (expected its lock within {} s, found it still held)",
                       kBusyTimeoutMs / 1000));
    default:
      fail(kResults, file, one_line(error.what()));
  }
}

}  // namespace quantmap::store
