// Tables of levels (formats.md, section 5): blocks along the flattened matrix.
#include <limits>
#include <utility>

#include "formats/encoded_kinds.hpp"

namespace quantmap {

void encode_lookup(Encoded& e, const float* x) {
  const std::int64_t values = e.rows * e.cols;
  const std::int64_t block = e.spec.format->block;
  for (std::int64_t first = 0; first < values; first += block) {
    const std::int64_t count = std::min(block, values - first);
    const Extent extent = block_extent(x + first, count);
    const float absmax =
        extent.nonfinite ? std::numeric_limits<float>::quiet_NaN() : std::max(extent.max, -extent.min);
    e.scales.push_back(absmax);
    e.counts.zero_groups += absmax == 0 ? 1 : 0;
    e.counts.nonfinite += nonfinite_in(x + first, count);
    for (std::int64_t i = first; i < first + count; ++i) {
      e.codes[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(with_codebook(e.spec.format->element, [&](auto codebook) {
            return decltype(codebook)::encode(lookup_normalized(x[i], 1.0F / absmax));
          }));
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
    const auto code = static_cast<std::uint32_t>(e.codes[i]);
    const float level = with_codebook(e.spec.format->element,
                                      [&](auto codebook) { return decltype(codebook)::decode(code); });
    out[i] = level * e.scales[i / block];
  }
}

}  // namespace quantmap
