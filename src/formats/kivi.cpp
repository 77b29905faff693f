#include "formats/kivi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/run_scale.hpp"

namespace quantmap {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Which group a value is in.
struct Groups {
  std::int64_t across;  // groups side by side: one a channel (keys), or a row's runs (values)
  KiviOptions options;

  Groups(const KiviOptions& kivi, std::int64_t channels)
      : across(kivi.side == KiviSide::keys ? channels : (channels + kivi.group - 1) / kivi.group),
        options(kivi) {}
  std::size_t count(std::int64_t tokens) const {
    const std::int64_t down =
        options.side == KiviSide::keys ? (tokens + options.group - 1) / options.group : tokens;
    return static_cast<std::size_t>(down * across);
  }
  std::size_t index(std::int64_t token, std::int64_t channel) const {
    return static_cast<std::size_t>(options.side == KiviSide::keys
                                        ? token / options.group * across + channel
                                        : token * across + channel / options.group);
  }
};

struct Range {
  float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();
  bool finite = true;
};

}  // namespace

KiviEncoded encode_kivi(const KiviOptions& options, std::int64_t tokens, std::int64_t channels,
                        const float* x) {
  KiviEncoded e;
  e.options = options;
  e.tokens = tokens;
  e.channels = channels;
  e.codes.resize(static_cast<std::size_t>(tokens * channels));
  if (e.codes.empty()) return e;
  const Groups groups(options, channels);
  std::vector<Range> ranges(groups.count(tokens));
  for (std::int64_t i = 0; i < tokens * channels; ++i) {
    Range& range = ranges[groups.index(i / channels, i % channels)];
    if (!std::isfinite(x[i])) {
      range.finite = false;
      ++e.counts.nonfinite;
      continue;
    }
    range.min = std::min(range.min, x[i]);
    range.max = std::max(range.max, x[i]);
  }
  const auto top = static_cast<float>((1 << options.bits) - 1);
  for (const Range& range : ranges) {
    float scale = stored_scale(options.scale, (range.max - range.min) / top);
    float least = stored_scale(options.scale, range.min);
    if (!range.finite || !std::isfinite(scale) || !std::isfinite(least)) {
      scale = least = kNan;
    } else if (scale == 0) {
      scale = 1;
      ++e.counts.zero_groups;
    }
    e.scales.push_back(scale);
    e.minima.push_back(least);
  }
  for (std::int64_t i = 0; i < tokens * channels; ++i) {
    const std::size_t group = groups.index(i / channels, i % channels);
    const float y = (x[i] - e.minima[group]) / e.scales[group];
    if (std::isnan(y)) continue;  // a code without meaning, 0
    e.codes[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(std::nearbyint(std::clamp(y, 0.0F, top)));
  }
  return e;
}

void decode_kivi(const KiviEncoded& e, float* out) {
  const Groups groups(e.options, e.channels);
  for (std::int64_t i = 0; i < e.tokens * e.channels; ++i) {
    const std::size_t group = groups.index(i / e.channels, i % e.channels);
    out[i] = static_cast<float>(e.codes[static_cast<std::size_t>(i)]) * e.scales[group] + e.minima[group];
  }
}

}  // namespace quantmap
