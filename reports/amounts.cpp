#include "reports/amounts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quantmap {

std::string with_error(const Number& value, const Number& error, int least_place) {
  constexpr int kPlainPlaces = 8;
  if (!value) return "-";
  if (!error || *error == 0) return fmt::format("{:.4g}", *value);
  const int place = 1 - static_cast<int>(std::floor(std::log10(*error)));
  if (place > kPlainPlaces) {
    const int size = *value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(*value))));
    return fmt::format("{:.{}e} ± {:.1e}", *value, std::max(1, place + size), *error);
  }
  const int shown = std::max(place, least_place);
  return fmt::format("{:.{}f} ± {:.{}f}", *value, shown, *error, shown);
}

std::string three_digits(const Number& value) {
  if (!value) return "-";
  return *value == 0 ? "0" : fmt::format("{:#.3g}", *value);
}

std::string percent(const Number& value) { return value ? fmt::format("{:.2f}", 100 * *value) : "-"; }

std::string bytes_text(const Number& bytes) {
  if (!bytes) return "-";
  const double mib = *bytes / (1 << 20);
  return mib >= 10240 ? fmt::format("{:.2f} GiB", mib / 1024) : fmt::format("{:.1f} MiB", mib);
}

std::string cache_text(const Number& bytes) {
  if (!bytes) return "-";
  return *bytes >= 10240 ? fmt::format("{:.4g} KiB", *bytes / 1024) : fmt::format("{:.0f} B", *bytes);
}

}  // namespace quantmap
