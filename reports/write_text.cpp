// `table`: aligned columns for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "reports/formats.hpp"
#include "reports/text.hpp"

namespace quantmap {
namespace {

constexpr std::size_t kGap = 2;  // spaces between columns

struct Cells {  // one column, ready to print
  std::string head;
  std::vector<std::string> rows;
  std::size_t width = 0;
  bool right = false;
};

std::vector<Cells> lay_out(const Table& table) {
  std::vector<Cells> columns(table.columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    Cells& cells = columns[c];
    cells.head = printable(table.columns[c].name);
    cells.right = is_numeric(table, c);
    cells.width = display_width(cells.head);
    for (const std::vector<Value>& row : table.rows) {
      cells.rows.push_back(shown(row[c], table.columns[c]));
      cells.width = std::max(cells.width, display_width(cells.rows.back()));
    }
  }
  return columns;
}

// Blocks of columns that fit the width, each beginning with column 0; a column too wide for any stands alone.
std::vector<std::vector<std::size_t>> fold(const std::vector<Cells>& columns, std::size_t width) {
  std::vector<std::vector<std::size_t>> blocks{{0}};
  std::size_t used = columns[0].width;
  for (std::size_t c = 1; c < columns.size(); ++c) {
    if (used + kGap + columns[c].width > width && blocks.back().size() > 1) {
      blocks.push_back({0});
      used = columns[0].width;
    }
    blocks.back().push_back(c);
    used += kGap + columns[c].width;
  }
  return blocks;
}

template <class Text>
void write_line(std::string& out, const std::vector<Cells>& columns, const std::vector<std::size_t>& block,
                Text&& text_of) {
  const std::size_t start = out.size();
  for (const std::size_t c : block) {
    const std::string text = text_of(columns[c]);
    const std::string padding(columns[c].width - display_width(text), ' ');
    if (c != block.front()) out.append(kGap, ' ');
    out += columns[c].right ? padding + text : text + padding;
  }
  while (out.size() > start && out.back() == ' ') out.pop_back();
  out += '\n';
}

// Words of one paragraph in lines of the width, those behind the first indented; a word too long stands
// alone.
void write_wrapped(std::string& out, const std::string& text, std::size_t indent, std::size_t width) {
  std::size_t used = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::size_t wide = display_width(word);
    if (used > indent && used + 1 + wide > width) {
      out += '\n';
      out.append(indent, ' ');
      used = indent;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += wide;
    begin = end + 1;
  }
  out += '\n';
}

}  // namespace

std::string write_text(const Table& table, int width) {
  std::string out;
  if (!table.title.empty()) out += printable(table.title) + "\n";
  if (!table.columns.empty()) {
    const std::vector<Cells> columns = lay_out(table);
    const auto blocks = fold(columns, static_cast<std::size_t>(std::max(width, 1)));
    for (const auto& block : blocks) {
      if (!out.empty()) out += '\n';
      write_line(out, columns, block, [](const Cells& cells) { return cells.head; });
      write_line(out, columns, block, [](const Cells& cells) { return std::string(cells.width, '-'); });
      for (std::size_t r = 0; r < table.rows.size(); ++r)
        write_line(out, columns, block, [r](const Cells& cells) { return cells.rows[r]; });
    }
    if (table.rows.empty()) out += "(no rows)\n";
  }
  if (!table.notes.empty() && !out.empty()) out += '\n';
  constexpr std::size_t kIndent = 6;  // of what follows `note: `
  for (const std::string& note : table.notes)
    write_wrapped(out, fmt::format("note: {}", printable(note)), kIndent,
                  static_cast<std::size_t>(std::max(width, 1)));
  return out;
}

}  // namespace quantmap
