#include <fmt/format.h>

#include <array>

#include "embedded/page.hpp"
#include "reports/report_page.hpp"

namespace quantmap {
namespace {

// The places of the page that are filled in, in the order of the files embedded (CMakeLists.txt).
constexpr std::array<std::string_view, 3> kPlaces = {"/*style*/", "/*d3*/", "/*script*/"};
constexpr std::string_view kDataPlace = "{data}";

void fill(std::string& page, std::string_view place, std::string_view text) {
  if (const std::size_t at = page.find(place); at != std::string::npos) page.replace(at, place.size(), text);
}

// JSON inside a script element: nothing in it may look like the element's end or a comment.
std::string escaped(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i);
    if (rest[0] == '<') {
      out += "\\u003c";
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += rest[0];
    }
  }
  return out;
}

}  // namespace

std::string report_html(const ReportData& data) {
  std::string page(embedded::page[0].second);
  fill(page, kDataPlace, escaped(report_json(data)));
  for (std::size_t i = 0; i < kPlaces.size(); ++i) fill(page, kPlaces[i], embedded::page[i + 1].second);
  return page;
}

}  // namespace quantmap
