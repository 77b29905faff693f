// The portable sample of formats.md, section 13: SplitMix64 (Steele, Lea, Flood 2014) and Box-Muller in
// double, rounded to float. Bit-identical to the numpy version that made the vectors.
#pragma once

#include <cstdint>

namespace quantmap {

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // In (0, 1): ((z >> 11) + 0.5) * 2^-53.
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// Fills out[0, count) with N(0,1) floats, pairs (r cos t, r sin t); count may be odd.
void fill_gaussian(std::uint64_t seed, float* out, std::int64_t count);

}  // namespace quantmap
