// Inputs of the benchmarks: normal values, aligned scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.hpp"
#include "formats/bf16.hpp"

namespace quantmap::bench {

inline std::vector<float> gaussian(std::int64_t count, std::uint64_t seed = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_gaussian(seed, values.data(), count);
  return values;
}

inline std::vector<std::uint16_t> gaussian_bf16(std::int64_t count, std::uint64_t seed = 1) {
  std::vector<std::uint16_t> bits;
  bits.reserve(static_cast<std::size_t>(count));
  for (const float value : gaussian(count, seed)) bits.push_back(bf16_from_float(value));
  return bits;
}

class AlignedScratch {
 public:
  explicit AlignedScratch(std::int64_t bytes) : memory_(static_cast<std::size_t>(bytes) + 64) {
    void* at = memory_.data();
    std::size_t room = memory_.size();
    at_ = static_cast<std::byte*>(std::align(64, static_cast<std::size_t>(bytes), at, room));
  }
  std::byte* data() const { return at_; }

 private:
  std::vector<std::byte> memory_;
  std::byte* at_ = nullptr;
};

}  // namespace quantmap::bench
