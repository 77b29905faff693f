#include <fmt/format.h>

#include <array>

#include "embedded/page.hpp"
#include "reports/report_page.hpp"

namespace quantmap {
namespace {

// The places of the page that are filled in, in their order in it.
constexpr std::array<std::string_view, 4> kPlaces = {"/*style*/", "{data}", "/*d3*/", "/*script*/"};

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
  const auto& [html, style, d3, script] = embedded::page;  // the files' order in CMakeLists.txt
  const std::string json = escaped(report_json(data));
  const std::array<std::string_view, kPlaces.size()> texts = {style.second, json, d3.second, script.second};
  // Front to back: what was filled in is not looked at again, whatever it holds.
  std::string_view rest = html.second;
  std::string page;
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    const std::size_t at = rest.find(kPlaces[i]);
    page += rest.substr(0, at);
    page += texts[i];
    rest.remove_prefix(at + kPlaces[i].size());
  }
  page += rest;
  return page;
}

}  // namespace quantmap
