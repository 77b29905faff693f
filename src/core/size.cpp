#include "core/size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kUnits = "KMGTP";  // each 1024 times the one before it

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::int64_t parse_size(std::string_view text, std::string_view option) {
  const auto refuse = [&](std::string_view detail) {
    fail_usage(option, fmt::format("{}: {}", quoted(text), detail));
  };
  constexpr std::string_view kForm = "not a size (written 64M, 2G, 1.5GiB: binary units; or plain bytes)";

  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, digits);
  std::string_view unit = text.substr(digits);
  if (unit.size() > 1 && unit[0] == ' ') unit.remove_prefix(1);
  std::int64_t scale = 1;
  if (!unit.empty() && upper(unit[0]) != 'B') {
    const std::size_t power = kUnits.find(upper(unit[0]));
    if (power == std::string_view::npos) refuse(kForm);
    if (unit.size() == 2 && upper(unit[1]) == 'B')
      refuse(fmt::format("{} may mean 1000 or 1024: write {}iB", quoted(unit), upper(unit[0])));
    const bool whole =
        unit.size() == 1 || (unit.size() == 3 && upper(unit[1]) == 'I' && upper(unit[2]) == 'B');
    if (!whole) refuse(kForm);
    scale = std::int64_t{1} << (10 * (power + 1));
  } else if (unit.size() > 1) {
    refuse(kForm);
  }

  // Whole and fractional part apart, so that every whole number of bytes is exact.
  std::int64_t whole = 0;
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, whole);
  if (error == std::errc::result_out_of_range) refuse("more than 2^63 - 1 bytes");
  if (error != std::errc()) refuse(kForm);
  double fraction = 0;
  if (rest != end) {
    const auto [last, fraction_error] = std::from_chars(rest, end, fraction);
    if (fraction_error != std::errc() || last != end || scale == 1) refuse(kForm);
  }
  const auto extra = static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(scale)));
  if (whole > (std::numeric_limits<std::int64_t>::max() - extra) / scale) refuse("more than 2^63 - 1 bytes");
  return whole * scale + extra;
}

std::string format_size(std::int64_t bytes) {
  const double magnitude = std::abs(static_cast<double>(bytes));
  double scaled = magnitude;
  std::size_t power = 0;
  // What would print as 1024.000 belongs to the next unit.
  while (power < kUnits.size() && std::round(scaled * 1000) >= 1024 * 1000) {
    scaled /= 1024;
    ++power;
  }
  const char* sign = bytes < 0 ? "-" : "";
  if (power == 0) return fmt::format("{} B", bytes);
  std::string digits = fmt::format("{:.3f}", scaled);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return fmt::format("{}{} {}iB", sign, digits, kUnits[power - 1]);
}

}  // namespace quantmap
