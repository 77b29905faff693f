// Which modules a rule, `include=` or `ignore=` names. Three forms:
//   *        every module
//   /RE/     a PCRE2 regular expression that matches anywhere in the module path unless it is anchored; a
//   slash
//            inside is written \/
//   name     the module path itself, letter for letter (letters, digits, `_`, `.`, `-`)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

class ModulePattern {
 public:
  // Throws Error (usage): naming the regex, the position and PCRE2's reason where it does not compile.
  explicit ModulePattern(std::string_view text);

  // Throws Error (usage) where the regex needs more steps than a limit (catastrophic backtracking). May be
  // called from several threads.
  bool matches(std::string_view module) const;
  bool matches_all() const { return text_ == "*"; }
  bool is_name() const { return !regex_ && !matches_all(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const void> regex_;  // pcre2_code
};

// Parts of `text` between separators that are not inside a /…/ (which starts right after an equals sign; the
// path of an @FILE has none). An unclosed /…/ reaches to the end.
std::vector<std::string_view> split_outside_regex(std::string_view text, std::string_view separators);

}  // namespace quantmap
