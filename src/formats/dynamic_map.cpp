#include "formats/dynamic_map.hpp"

#include <algorithm>
#include <cmath>

namespace quantmap {
namespace {

std::array<float, 256> make_dynamic_map() {
  std::array<float, 256> map{};
  std::size_t used = 0;
  for (int i = 0; i < 7; ++i) {
    const int parts = 1 << i;
    const float step = (1.0F - 0.1F) / static_cast<float>(parts);
    // Exact in double, then rounded once, as torch's fused multiply-add.
    const auto boundary = [&](int k) {
      return static_cast<float>(k < (parts + 1) / 2
                                    ? static_cast<double>(0.1F) + static_cast<double>(step) * k
                                    : 1.0 - static_cast<double>(step) * (parts - k));
    };
    const auto power = static_cast<float>(std::pow(10.0, i - 6));
    for (int k = 0; k < parts; ++k) {
      const float value = power * ((boundary(k) + boundary(k + 1)) / 2);
      map[used++] = value;
      map[used++] = -value;
    }
  }
  map[used++] = 0;
  map[used++] = 1;
  std::sort(map.begin(), map.end());
  return map;
}

std::array<float, 255> make_midpoints(const std::array<float, 256>& map) {
  std::array<float, 255> midpoints{};
  for (std::size_t i = 0; i < midpoints.size(); ++i) midpoints[i] = (map[i] + map[i + 1]) / 2;
  return midpoints;
}

}  // namespace

const std::array<float, 256>& dynamic_map() {
  static const std::array<float, 256> map = make_dynamic_map();
  return map;
}

std::uint32_t dynamic_encode(float normalized) {
  static const std::array<float, 255> midpoints = make_midpoints(dynamic_map());
  // The first midpoint that is not below: a tie with it stays with the lower entry.
  return static_cast<std::uint32_t>(std::lower_bound(midpoints.begin(), midpoints.end(), normalized) -
                                    midpoints.begin());
}

}  // namespace quantmap
