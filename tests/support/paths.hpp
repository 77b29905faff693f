// Where tests find their data. `shared` data may be absent: tests that need it skip by name.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace quantmap::testing {

inline std::filesystem::path source_dir() { return QUANTMAP_SOURCE_DIR; }
inline std::filesystem::path demo_dir() { return source_dir() / "datasets/demo"; }
// ../shared beside the repository, or QUANTMAP_SHARED.
inline std::filesystem::path shared_dir() {
  const char* set = std::getenv("QUANTMAP_SHARED");
  return set ? std::filesystem::path(set) : source_dir().parent_path() / "shared";
}
// Golden vectors: QUANTMAP_VECTORS, default ../shared/design/vectors.
inline std::filesystem::path vectors_dir() {
  const char* set = std::getenv("QUANTMAP_VECTORS");
  return set ? std::filesystem::path(set) : shared_dir() / "design/vectors";
}
// A fresh folder under the test's temporary directory, emptied first; of this process alone, since ctest runs
// cases side by side.
inline std::filesystem::path fresh_dir(const std::string& name) {
  const auto dir =
      std::filesystem::path(::testing::TempDir()) / ("quantmap_" + name + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

}  // namespace quantmap::testing

#define QUANTMAP_NEEDS(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << (path)
