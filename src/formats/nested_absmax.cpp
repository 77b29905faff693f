#include <algorithm>
#include <cmath>

#include "formats/codebook.hpp"
#include "formats/dynamic_map.hpp"
#include "formats/encoded.hpp"

namespace quantmap {
namespace {

// The mean of the finite maxima, summed in double and rounded once.
float mean_of(std::span<const float> absmax) {
  double sum = 0;
  std::int64_t count = 0;
  for (const float value : absmax) {
    if (!std::isfinite(value)) continue;
    sum += static_cast<double>(value);
    ++count;
  }
  return count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
}

}  // namespace

NestedAbsmax nest_absmax(std::span<const float> absmax) {
  NestedAbsmax result;
  result.offset = mean_of(absmax);
  result.codes.resize(absmax.size());
  result.decoded.resize(absmax.size());
  const auto& map = dynamic_map();
  for (std::size_t begin = 0; begin < absmax.size(); begin += kNestedBlock) {
    const std::size_t end = std::min(absmax.size(), begin + kNestedBlock);
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const float distance = std::abs(absmax[i] - result.offset);
      largest = std::isnan(distance) || std::isnan(largest) ? std::nanf("") : std::max(largest, distance);
    }
    result.nested.push_back(largest);
    const float inverse = 1.0F / largest;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t code = dynamic_encode(lookup_normalized(absmax[i] - result.offset, inverse));
      result.codes[i] = static_cast<std::uint8_t>(code);
      result.decoded[i] = map[code] * largest + result.offset;
    }
  }
  return result;
}

}  // namespace quantmap
