// `md`: a GitHub table. Text is text: nothing in the data is taken for Markdown or HTML.
#include <fmt/format.h>

#include <cctype>

#include "reports/formats.hpp"
#include "reports/text.hpp"

namespace quantmap {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0; }

std::string escape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '_': {  // inside a word it is itself: FP8_DYNAMIC stays readable
        const bool inside = i > 0 && i + 1 < text.size() && is_word(text[i - 1]) && is_word(text[i + 1]);
        out += inside ? "_" : "\\_";
        break;
      }
      case '\\':
      case '|':
      case '*':
      case '`':
      case '[':
      case ']':
      case '~':
      case '$':
        out += '\\';
        out += c;
        break;
      default:
        out += c;
    }
  }
  return out;
}

// As the start of a list item, where `# `, `- ` or `1. ` would begin a block.
std::string escape_line(std::string_view text) {
  std::string out = escape(text);
  const std::size_t mark = out.find_first_not_of("0123456789");
  const bool begins = mark != std::string::npos &&
                      (mark == 0 ? std::string_view("#+-=").find(out[0]) != std::string_view::npos
                                 : out[mark] == '.' || out[mark] == ')');
  if (begins) out.insert(out.begin() + static_cast<std::ptrdiff_t>(mark), '\\');
  return out;
}

}  // namespace

std::string write_markdown(const Table& table) {
  std::string out;
  if (!table.title.empty()) out += fmt::format("**{}**\n\n", escape(printable(table.title)));
  if (!table.columns.empty()) {
    std::string rule = "|";
    out += '|';
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      out += fmt::format(" {} |", escape(printable(table.columns[c].name)));
      rule += is_numeric(table, c) ? " --: |" : " :-- |";
    }
    out += fmt::format("\n{}\n", rule);
    for (const std::vector<Value>& row : table.rows) {
      out += '|';
      for (std::size_t c = 0; c < row.size(); ++c)
        out += fmt::format(" {} |", escape(shown(row[c], table.columns[c])));
      out += '\n';
    }
    if (table.rows.empty()) out += "\n(no rows)\n";
  }
  if (!table.notes.empty() && !table.columns.empty()) out += '\n';
  for (const std::string& note : table.notes) out += fmt::format("- {}\n", escape_line(printable(note)));
  return out;
}

}  // namespace quantmap
