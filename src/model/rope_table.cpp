#include "model/rope_table.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quantmap {
namespace {

// llama3: long wavelengths are divided by the factor, short ones kept, those between blended.
float llama3_frequency(const RopeConfig& rope, float frequency) {
  const double low_wavelength = rope.original_max_position / rope.low_freq_factor;
  const double high_wavelength = rope.original_max_position / rope.high_freq_factor;
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < high_wavelength) return frequency;
  if (wavelength > low_wavelength) return static_cast<float>(frequency / rope.factor);
  const double smooth = (rope.original_max_position / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return static_cast<float>((1 - smooth) * frequency / rope.factor + smooth * frequency);
}

// YaRN: the pair at which a rotation count is reached over the original context.
double yarn_dimension(const RopeConfig& rope, std::int64_t head_dim, double rotations) {
  return static_cast<double>(head_dim) *
         std::log(rope.original_max_position / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

}  // namespace

std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  std::vector<float> result(static_cast<std::size_t>(half));
  double ramp_low = 0, ramp_high = 0;
  if (rope.kind == RopeKind::yarn) {
    ramp_low = yarn_dimension(rope, head_dim, rope.beta_fast);
    ramp_high = yarn_dimension(rope, head_dim, rope.beta_slow);
    if (rope.truncate) {
      ramp_low = std::floor(ramp_low);
      ramp_high = std::ceil(ramp_high);
    }
    ramp_low = std::max(ramp_low, 0.0);
    ramp_high = std::min(ramp_high, static_cast<double>(head_dim - 1));
    if (ramp_low == ramp_high) ramp_high += 0.001;
  }
  for (std::int64_t i = 0; i < half; ++i) {
    const auto base = static_cast<float>(
        1.0 / std::pow(rope.theta, static_cast<double>(2 * i) / static_cast<double>(head_dim)));
    float& frequency = result[static_cast<std::size_t>(i)];
    switch (rope.kind) {
      case RopeKind::standard:
        frequency = base;
        break;
      case RopeKind::linear:
        frequency = static_cast<float>(base / rope.factor);
        break;
      case RopeKind::llama3:
        frequency = llama3_frequency(rope, base);
        break;
      case RopeKind::yarn: {
        const double ramp =
            std::clamp((static_cast<double>(i) - ramp_low) / (ramp_high - ramp_low), 0.0, 1.0);
        frequency = static_cast<float>(base / rope.factor * ramp + base * (1 - ramp));
        break;
      }
    }
    // GGUF keeps llama3's scaling as a divisor of each pair.
    if (!rope.frequency_factors.empty()) frequency /= rope.frequency_factors.at(static_cast<std::size_t>(i));
  }
  return result;
}

RopeTable rope_table(const RopeConfig& rope, std::int64_t head_dim, std::int64_t count) {
  return rope_table(rope, inverse_frequencies(rope, head_dim), count);
}

RopeTable rope_table(const RopeConfig& rope, const std::vector<float>& frequencies, std::int64_t count) {
  const auto factor = static_cast<float>(rope.kind == RopeKind::yarn ? rope.attention_factor : 1.0);
  RopeTable table;
  table.cosines.reserve(static_cast<std::size_t>(count) * frequencies.size());
  table.sines.reserve(table.cosines.capacity());
  for (std::int64_t position = 0; position < count; ++position)
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      table.cosines.push_back(static_cast<float>(std::cos(double{angle})) * factor);
      table.sines.push_back(static_cast<float>(std::sin(double{angle})) * factor);
    }
  return table;
}

}  // namespace quantmap
