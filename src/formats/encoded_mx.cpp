// Microscaling (formats.md, section 3).
#include <bit>
#include <limits>
#include <vector>

#include "formats/clip.hpp"
#include "formats/encoded_kinds.hpp"
#include "formats/mx_scale.hpp"

namespace quantmap {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

void encode_mx(Encoded& e, const float* x) {
  const FloatCodec codec = codec_of(*e.spec.format);
  const MxElement element =
      with_float(e.spec.format->element, [](auto type) { return kMxElement<decltype(type)>; });
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const Extent extent = block_extent(x + first, count);
    const float amax = extent.nonfinite ? kNan : std::max(extent.max, -extent.min);
    std::uint32_t scale = mx_scale_code(std::bit_cast<std::uint32_t>(amax), e.spec.rule, element);
    if (e.spec.method == Method::mse && amax > 0) {
      std::uint32_t tried = scale;
      std::vector<float> y(static_cast<std::size_t>(count));
      search_clip(
          [&](float p) {
            const std::uint32_t code =
                mx_scale_code(std::bit_cast<std::uint32_t>(p * amax), e.spec.rule, element);
            if (p < 1 && code == tried) return kNotTried;
            tried = code;
            const int power = 127 - static_cast<int>(code);
            for (std::int64_t i = 0; i < count; ++i) {
              y[static_cast<std::size_t>(i)] =
                  std::ldexp(codec.decode(codec.encode(std::ldexp(x[first + i], power))), -power);
            }
            return clip_error(x + first, y.data(), count, amax);
          },
          [&] { scale = tried; });
    }
    e.block_scales.push_back(static_cast<std::uint8_t>(scale));
    e.counts.zero_groups += amax == 0 ? 1 : 0;
    e.counts.nonfinite += nonfinite_in(x + first, count);
    for (std::int64_t i = first; i < first + count; ++i) {
      const float y = std::ldexp(x[i], 127 - static_cast<int>(scale));
      e.codes[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(codec.encode(y));
      if (scale != kE8m0Nan && saturates(codec, y)) ++e.counts.saturated;
    }
  });
}

void decode_mx(const Encoded& e, float* out) {
  const FloatCodec codec = codec_of(*e.spec.format);
  std::size_t block = 0;
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const int scale = e.block_scales[block++];
    for (std::int64_t i = first; i < first + count; ++i) {
      const float code = codec.decode(static_cast<std::uint32_t>(e.codes[static_cast<std::size_t>(i)]));
      out[i] = scale == static_cast<int>(kE8m0Nan) ? kNan : std::ldexp(code, scale - 127);
    }
  });
}

}  // namespace quantmap
