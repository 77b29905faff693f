// Tables of levels (formats.md, section 5): blocks along the flattened matrix.
#include <limits>
#include <utility>
#include <vector>

#include "formats/clip.hpp"
#include "formats/encoded_kinds.hpp"

namespace quantmap {

namespace {

std::uint32_t code_of(const Encoded& e, float x, float absmax) {
  return with_codebook(e.spec.format->element, [&](auto codebook) {
    return decltype(codebook)::encode(lookup_normalized(x, 1.0F / absmax));
  });
}
float level_of(const Encoded& e, std::uint32_t code) {
  return with_codebook(e.spec.format->element,
                       [&](auto codebook) { return decltype(codebook)::decode(code); });
}

// The absmax of a block under the method `mse`.
float clipped_absmax(const Encoded& e, const float* x, std::int64_t count, float amax) {
  float tried = amax;
  float best = amax;
  std::vector<float> y(static_cast<std::size_t>(count));
  search_clip(
      [&](float p) {
        tried = p * amax;
        for (std::int64_t i = 0; i < count; ++i)
          y[static_cast<std::size_t>(i)] = level_of(e, code_of(e, x[i], tried)) * tried;
        return clip_error(x, y.data(), count, amax);
      },
      [&] { best = tried; });
  return best;
}

}  // namespace

void encode_lookup(Encoded& e, const float* x) {
  const std::int64_t values = e.rows * e.cols;
  const std::int64_t block = e.spec.format->block;
  for (std::int64_t first = 0; first < values; first += block) {
    const std::int64_t count = std::min(block, values - first);
    const Extent extent = block_extent(x + first, count);
    float absmax =
        extent.nonfinite ? std::numeric_limits<float>::quiet_NaN() : std::max(extent.max, -extent.min);
    if (e.spec.method == Method::mse && absmax > 0) absmax = clipped_absmax(e, x + first, count, absmax);
    e.scales.push_back(absmax);
    e.counts.zero_groups += absmax == 0 ? 1 : 0;
    e.counts.nonfinite += nonfinite_in(x + first, count);
    for (std::int64_t i = first; i < first + count; ++i) {
      e.codes[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(code_of(e, x[i], absmax));
    }
  }
  if (e.spec.nested) {
    NestedAbsmax nested = nest_absmax(e.scales);
    e.absmax_codes = std::move(nested.codes);
    e.nested_absmax = std::move(nested.nested);
    e.nested_offset = nested.offset;
    e.scales = std::move(nested.decoded);
  }
}

void decode_lookup(const Encoded& e, float* out) {
  const auto block = static_cast<std::size_t>(e.spec.format->block);
  for (std::size_t i = 0; i < e.codes.size(); ++i) {
    out[i] = level_of(e, static_cast<std::uint32_t>(e.codes[i])) * e.scales[i / block];
  }
}

}  // namespace quantmap
