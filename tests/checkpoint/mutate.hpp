// Seeded mutation: changed copies of a right file, each either read or refused with an Error (input) line. A
// few thousand by default; QUANTMAP_FUZZ_SECONDS=N goes on for N seconds.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"

namespace quantmap::testing {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t count) { return count == 0 ? 0 : random_.next() % count; }

  // One to four changes; the first `head` bytes, where the structure is, are hit more often than the rest.
  std::string mutate(std::string bytes, std::size_t head) {
    for (std::uint64_t changes = 1 + below(4); changes > 0; --changes) change(bytes, head);
    return bytes;
  }

 private:
  void change(std::string& bytes, std::size_t head) {
    if (bytes.empty()) return;
    const std::size_t range = below(4) != 0 ? std::min(head, bytes.size()) : bytes.size();
    const std::size_t at = below(range);
    switch (below(8)) {
      case 0:  // one bit
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:  // any byte
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:  // a number at the edge of something
        put(bytes, at, below(2) == 0 ? 4 : 8);
        break;
      case 3:  // cut
        bytes.resize(at);
        break;
      case 4:  // a run left out
        bytes.erase(at, 1 + below(16));
        break;
      case 5:  // a run twice
        bytes.insert(at, bytes.substr(at, 1 + below(64)));
        break;
      case 6:  // a run from elsewhere
        bytes.replace(at, 1 + below(16), bytes.substr(below(bytes.size()), 1 + below(16)));
        break;
      default:  // a character that JSON gives a meaning
        bytes[at] = "{}[]\",:0-9e.\\\0"[below(14)];
        break;
    }
  }

  void put(std::string& bytes, std::size_t at, std::size_t size) {
    static constexpr std::uint64_t kEdges[] = {0,          1,          2,          31,         32,
                                               0x7F,       0xFF,       0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                               1ULL << 32, 1ULL << 61, 1ULL << 62, 1ULL << 63, ~0ULL};
    const std::uint64_t value = kEdges[below(std::size(kEdges))] + below(3) - 1;
    std::memcpy(bytes.data() + at, &value, std::min(size, bytes.size() - at));
  }

  SplitMix64 random_;
};

// `read` takes a changed file and may throw Error (input), nothing else. At least one of each kind must come
// up: a mutator that breaks everything, or nothing, tests nothing.
inline void expect_read_or_refused(const std::vector<std::string>& files, std::size_t head, int count,
                                   const std::function<void(const std::string&)>& read) {
  const char* set = std::getenv("QUANTMAP_FUZZ_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(set ? std::atoi(set) : 0);
  int accepted = 0, refused = 0;
  for (std::uint64_t seed = 1;
       seed <= static_cast<std::uint64_t>(count) || std::chrono::steady_clock::now() < end; ++seed) {
    Mutator mutator(seed);
    const std::string bytes = mutator.mutate(files[mutator.below(files.size())], head);
    try {
      read(bytes);
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.kind(), ErrorKind::input) << "seed " << seed << ": " << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "seed " << seed;
    } catch (const std::exception& other) {
      FAIL() << "seed " << seed << ": " << other.what();
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, count / 4);
}

}  // namespace quantmap::testing
