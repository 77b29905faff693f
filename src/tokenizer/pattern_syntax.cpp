// From Oniguruma's Ruby syntax to PCRE2's (doc/RE of Oniguruma 6.9, pcre2pattern(3)). What differs: the
// classes \s and \w (White_Space and Word there), \v, \h, \u, class sets
// ([a&&b], [a[b]]), {n,m}+ (a repeated repeat there, possessive here), {,n}, and the options m and x.
#include <fmt/format.h>

#include <cctype>

#include "core/error.hpp"
#include "tokenizer/pattern.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kSpace = R"(\t-\r\x{85}\p{Z})";
// Oniguruma's Word, and by its table for Latin-1 also the superscript digits and fractions there.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& file) : in_(pattern), file_(file) {}

  std::string translate() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '{') {
        repeat();
      } else if (c == '(') {
        group();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail_input("tokenizer", file_, fmt::format("pattern {}: {} is not supported", quoted(in_, 200), what));
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) refuse("a lone backslash");
    const char c = in_[at_ + 1];
    at_ += 2;
    const auto set = [&](std::string_view members, bool negated) {
      if (!in_class)
        out_ += fmt::format("[{}{}]", negated ? "^" : "", members);
      else
        out_ += members;
    };
    if (c == 's') return set(kSpace, false);
    if (c == 'w') return set(kWord, false);
    if (!in_class && c == 'S') return set(kSpace, true);
    if (!in_class && c == 'W') return set(kWord, true);
    if (!in_class && (c == 'b' || c == 'B')) {
      // A boundary of the Word class above.
      const std::string word = fmt::format("[{}]", kWord);
      const std::string_view first = c == 'b' ? "!" : "=", second = c == 'b' ? "=" : "!";
      out_ += fmt::format("(?:(?<={0})(?{1}{0})|(?<!{0})(?{2}{0}))", word, first, second);
      return;
    }
    if (c == 'v') {
      out_ += "\\x{0B}";
      return;
    }
    if (c == 'u') {
      if (at_ + 4 > in_.size()) refuse("\\u without four digits");
      for (int i = 0; i < 4; ++i)
        if (!std::isxdigit(static_cast<unsigned char>(in_[at_ + static_cast<std::size_t>(i)])))
          refuse("\\u without four digits");
      out_ += fmt::format("\\x{{{}}}", in_.substr(at_, 4));
      at_ += 4;
      return;
    }
    // \S in a class differs in U+180E only, which PCRE2 calls a space; no pattern can depend on it sensibly.
    constexpr std::string_view both = "dDpPrntfaexS", outside = "AzZ";
    if (std::isalpha(static_cast<unsigned char>(c)) && both.find(c) == both.npos &&
        (in_class || outside.find(c) == outside.npos))
      refuse(fmt::format("\\{}{}", c, in_class ? " in a class" : ""));
    out_ += '\\';
    out_ += c;
  }

  void character_class() {
    out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
    bool first = true;
    for (; at_ < in_.size(); first = false) {
      const char c = in_[at_];
      if (c == '\\') {
        escape(true);
        continue;
      }
      if (c == ']') {
        if (first) refuse("an empty class");
        out_ += in_[at_++];
        return;
      }
      if (c == '[') refuse(at_ + 1 < in_.size() && in_[at_ + 1] == ':' ? "[:name:]" : "a class in a class");
      if (c == '&' && at_ + 1 < in_.size() && in_[at_ + 1] == '&') refuse("&& in a class");
      out_ += c;
      ++at_;
    }
    refuse("an unclosed class");
  }

  // What may follow `(?`: the kinds of groups both know, and the option i. Ruby's m is PCRE2's s, its x
  // differs.
  void group() {
    out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == '*') refuse("(*");
    if (at_ + 1 >= in_.size() || in_[at_] != '?') return;
    const std::string_view rest = in_.substr(at_ + 1);
    constexpr std::string_view kinds[] = {":", "=", "!", ">", "<=", "<!", "i:", "i)", "-i:", "-i)"};
    for (const std::string_view kind : kinds)
      if (rest.starts_with(kind)) return;
    refuse(fmt::format("(?{}", rest.substr(0, 1)));
  }

  void repeat() {
    const std::size_t close = in_.find('}', at_);
    if (close != in_.npos) {
      if (in_[at_ + 1] == ',') refuse("{,n}");
      const bool digits = std::isdigit(static_cast<unsigned char>(in_[at_ + 1]));
      if (digits && close + 1 < in_.size() && in_[close + 1] == '+') refuse("{n,m}+");
    }
    out_ += in_[at_++];
  }

  std::string_view in_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre_from_oniguruma(std::string_view pattern, const std::string& file) {
  return Translator(pattern, file).translate();
}

}  // namespace quantmap
