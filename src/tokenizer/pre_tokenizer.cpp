#include "tokenizer/pre_tokenizer.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/pattern_json.hpp"
#include "tokenizer/split.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

using Pieces = std::vector<TextPiece>;
using Step = std::function<Pieces(Pieces)>;
using Finder = std::function<std::vector<TextRange>(std::string_view)>;

// Whitespace's: \w+|[^\w\s]+ with the \w of Rust's regex (UTS 18), which is_word() is too. What it matches is
// kept.
#define QUANTMAP_WORD R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D})"
constexpr std::string_view kWordsAndRuns = "[" QUANTMAP_WORD "]+|[^" QUANTMAP_WORD R"(\s]+)";

Step split_step(Finder find, SplitBehavior behavior) {
  return [find = std::move(find), behavior](Pieces pieces) {
    Pieces out;
    for (TextPiece& piece : pieces) {
      const std::vector<TextRange> ranges = split_ranges(find(piece.text), behavior);
      if (ranges.size() == 1 && ranges[0].begin == 0 && ranges[0].end == piece.text.size()) {
        out.push_back(std::move(piece));
        continue;
      }
      for (const TextRange& range : ranges)
        out.push_back(
            {piece.text.substr(range.begin, range.end - range.begin), piece.at_start && range.begin == 0});
    }
    return out;
  };
}

Step split_step(const TextPattern& pattern, SplitBehavior behavior, bool invert = false) {
  return split_step(
      [pattern, invert](std::string_view text) {
        std::vector<TextRange> ranges = pattern.find(text);
        if (invert)
          for (TextRange& range : ranges) range.match = !range.match;
        return ranges;
      },
      behavior);
}

// Each character of the class is a match of its own.
Step split_step(bool (*in_class)(char32_t), SplitBehavior behavior) {
  return split_step(
      [in_class](std::string_view text) {
        std::vector<TextRange> ranges;
        std::size_t covered = 0;
        for (std::size_t i = 0; i < text.size();) {
          const std::size_t begin = i;
          if (!in_class(next_character(text, i))) continue;
          if (begin > covered) ranges.push_back({covered, begin, false});
          ranges.push_back({begin, i, true});
          covered = i;
        }
        if (covered < text.size()) ranges.push_back({covered, text.size(), false});
        return ranges;
      },
      behavior);
}

Pieces spell_bytes(Pieces pieces) {
  for (TextPiece& piece : pieces) piece.text = byte_level_encode(piece.text);
  return pieces;
}

Step chain(std::vector<Step> steps) {
  return [steps = std::move(steps)](Pieces pieces) {
    for (const Step& step : steps) pieces = step(std::move(pieces));
    return pieces;
  };
}

SplitBehavior parse_behavior(const JsonPlace& json) {
  const std::string name = json.as_string();
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  json.fail("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

Step parse_byte_level(const JsonPlace& json) {
  std::vector<Step> steps;
  if (json.boolean_or("add_prefix_space", true))
    steps.push_back([](Pieces pieces) {
      for (TextPiece& piece : pieces)
        if (!piece.text.empty() && piece.text[0] != ' ') piece.text.insert(0, 1, ' ');
      return pieces;
    });
  if (json.boolean_or("use_regex", true))
    steps.push_back(split_step(TextPattern::regex(kGpt2Pattern, json.file()), SplitBehavior::isolated));
  steps.push_back(spell_bytes);
  return chain(std::move(steps));
}

enum class Prepend { never, first, always };

Prepend parse_prepend(const JsonPlace& json) {
  const std::string name = json.string_or("prepend_scheme", "always");
  // The older key; the reference refuses it too where the two disagree.
  if (!json.boolean_or("add_prefix_space", true) && name != "never")
    json.complain("add_prefix_space is false, so prepend_scheme must be never");
  if (name == "never") return Prepend::never;
  if (name == "first") return Prepend::first;
  if (name == "always") return Prepend::always;
  json.at("prepend_scheme").fail("never, first or always");
}

// One character, as text.
std::string parse_character(const JsonPlace& json) {
  const std::string text = json.as_string();
  std::size_t end = 0;
  if (!text.empty()) next_character(text, end);
  if (text.empty() || end != text.size()) json.fail("one character");
  return text;
}

Step parse_metaspace(const JsonPlace& json) {
  const std::string mark = json.has("replacement") ? parse_character(json.at("replacement")) : "\u2581";
  const Prepend prepend = parse_prepend(json);
  const auto replace = [mark, prepend](Pieces pieces) {
    for (TextPiece& piece : pieces) {
      std::string text;
      for (const char c : piece.text) {
        if (c == ' ')
          text += mark;
        else
          text += c;
      }
      const bool wanted = prepend == Prepend::always || (prepend == Prepend::first && piece.at_start);
      if (wanted && !text.empty() && !text.starts_with(mark)) text.insert(0, mark);
      piece.text = std::move(text);
    }
    return pieces;
  };
  if (!json.boolean_or("split", true)) return replace;
  return chain(
      {replace, split_step(TextPattern::literal(mark, json.file()), SplitBehavior::merged_with_next)});
}

}  // namespace

PreTokenizer parse_pre_tokenizer(const JsonPlace& json) {
  if (json.value().is_null()) return {[](Pieces pieces) { return pieces; }, false};
  const std::string type = json.string("type");
  if (type == "Sequence") {
    const JsonPlace list = json.at("pretokenizers");
    PreTokenizer all;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < list.size(); ++i) {
      PreTokenizer one = parse_pre_tokenizer(list.at(i));
      if (one.byte_level && all.byte_level) list.at(i).refuse("a second ByteLevel");
      all.byte_level = all.byte_level || one.byte_level;
      steps.push_back(std::move(one.run));
    }
    all.run = chain(std::move(steps));
    return all;
  }
  if (type == "ByteLevel") return {parse_byte_level(json), true};
  if (type == "Split")
    return {split_step(parse_pattern(json.at("pattern")), parse_behavior(json.at("behavior")),
                       json.boolean_or("invert", false)),
            false};
  if (type == "Digits")
    return {split_step(is_number, json.boolean("individual_digits") ? SplitBehavior::isolated
                                                                    : SplitBehavior::contiguous),
            false};
  if (type == "Punctuation")
    return {split_step(is_punctuation,
                       json.has("behavior") ? parse_behavior(json.at("behavior")) : SplitBehavior::isolated),
            false};
  if (type == "Whitespace")
    return {split_step(TextPattern::regex(kWordsAndRuns, json.file()), SplitBehavior::removed, true), false};
  if (type == "WhitespaceSplit") return {split_step(is_white_space, SplitBehavior::removed), false};
  if (type == "CharDelimiterSplit")
    return {split_step(TextPattern::literal(parse_character(json.at("delimiter")), json.file()),
                       SplitBehavior::removed),
            false};
  if (type == "Metaspace") return {parse_metaspace(json), false};
  json.refuse(fmt::format("pre-tokenizer {}", quoted(type)));
}

PreTokenizer byte_level_chain(const std::vector<TextPattern>& patterns) {
  std::vector<Step> steps;
  for (const TextPattern& pattern : patterns) steps.push_back(split_step(pattern, SplitBehavior::isolated));
  steps.push_back(spell_bytes);
  return {chain(std::move(steps)), true};
}

}  // namespace quantmap
