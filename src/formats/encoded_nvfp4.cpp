// NVFP4 (formats.md, section 4).
#include "formats/clip.hpp"
#include "formats/encoded_kinds.hpp"
#include "formats/nvfp4.hpp"

namespace quantmap {
namespace {

// One block of codes, x * encoder or x / divisor under an E4M3 scale.
struct Candidate {
  std::uint32_t scale_code;
  float scale;
  std::int32_t codes[kNvfp4Block] = {};
  std::int64_t saturated = 0;
  float error = 0;
};

Candidate four_over_six_candidate(const FourOverSix& tensor, std::uint32_t scale_code, const float* x,
                                  std::int64_t count) {
  Candidate result{scale_code, Fp8E4M3::decode(scale_code)};
  const FloatCodec codec = codec_of<Fp4E2M1>();
  const float encoder = tensor.encoder(result.scale);
  for (std::int64_t i = 0; i < count; ++i) {
    const float y = x[i] * encoder;
    result.codes[i] = static_cast<std::int32_t>(codec.encode(std::clamp(y, -6.0F, 6.0F)));
    result.saturated += saturates(codec, y) ? 1 : 0;
    const float q = codec.decode(static_cast<std::uint32_t>(result.codes[i]));
    const float difference = tensor.compared(q, result.scale) - x[i];
    result.error += difference * difference;
  }
  return result;
}

Candidate canonical_candidate(float g, std::uint32_t scale_code, const float* x, std::int64_t count) {
  Candidate result{scale_code, Fp8E4M3::decode(scale_code)};
  const FloatCodec codec = codec_of<Fp4E2M1>();
  const float divisor = result.scale * g;
  for (std::int64_t i = 0; i < count && divisor != 0; ++i) {
    result.codes[i] = static_cast<std::int32_t>(codec.encode(x[i] / divisor));
    result.saturated += saturates(codec, x[i] / divisor) ? 1 : 0;
  }
  return result;
}

// The best of the scales that follow from a clipped maximum.
Candidate clipped_candidate(float g, float block_amax, const float* x, std::int64_t count) {
  Candidate tried{}, best{};
  search_clip(
      [&](float p) {
        const std::uint32_t code = nvfp4_block_scale(p * block_amax, g);
        if (p < 1 && code == tried.scale_code) return kNotTried;
        tried = canonical_candidate(g, code, x, count);
        if (tried.scale * g == 0) return kNotTried;
        float y[kNvfp4Block];
        for (std::int64_t i = 0; i < count; ++i)
          y[i] = Fp4E2M1::decode(static_cast<std::uint32_t>(tried.codes[i])) * (tried.scale * g);
        return clip_error(x, y, count, block_amax);
      },
      [&] { best = tried; });
  return best;
}

}  // namespace

void encode_nvfp4(Encoded& e, const float* x, const TensorRange& range) {
  const float amax = e.spec.no_global ? nvfp4_unit_amax(e.spec.four_over_six) : range.amax;
  const FourOverSix tensor(amax);
  e.tensor_scale = e.spec.four_over_six ? tensor.encode_scale : nvfp4_tensor_scale(amax);
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const Extent extent = block_extent(x + first, count);
    if (extent.nonfinite) {
      e.counts.nonfinite += nonfinite_in(x + first, count);
      e.block_scales.push_back(static_cast<std::uint8_t>(Fp8E4M3::kNan));
      return;
    }
    const float block_amax = std::max(extent.max, -extent.min);
    Candidate chosen{};
    if (e.spec.four_over_six) {
      chosen = four_over_six_candidate(tensor, tensor.six(block_amax), x + first, count);
      const Candidate four = four_over_six_candidate(tensor, tensor.four(block_amax), x + first, count);
      if (four.error < chosen.error) chosen = four;
    } else {
      chosen = canonical_candidate(e.tensor_scale, nvfp4_block_scale(block_amax, e.tensor_scale), x + first,
                                   count);
      if (e.spec.method == Method::mse && chosen.scale * e.tensor_scale != 0)
        chosen = clipped_candidate(e.tensor_scale, block_amax, x + first, count);
    }
    std::copy_n(chosen.codes, count, e.codes.begin() + first);
    e.block_scales.push_back(static_cast<std::uint8_t>(chosen.scale_code));
    const bool vanishes = e.spec.four_over_six ? chosen.scale == 0 : chosen.scale * e.tensor_scale == 0;
    if (block_amax == 0) {
      ++e.counts.zero_groups;
    } else if (vanishes) {
      ++e.counts.underflow_blocks;
    } else {
      e.counts.saturated += chosen.saturated;
    }
  });
}

void decode_nvfp4(const Encoded& e, float* out) {
  std::size_t block = 0;
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const float scale = Fp8E4M3::decode(e.block_scales[block++]);
    for (std::int64_t i = first; i < first + count; ++i) {
      const float code = Fp4E2M1::decode(static_cast<std::uint32_t>(e.codes[static_cast<std::size_t>(i)]));
      out[i] = e.spec.four_over_six ? code * scale / e.tensor_scale : code * (scale * e.tensor_scale);
    }
  });
}

}  // namespace quantmap
