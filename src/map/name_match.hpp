// The three ways in which quantization configurations name modules (B57); each tool's own rule, told apart:
//   names      compressed-tensors: `re:` and a regular expression matched at the name's start (Python's
//   re.match),
//              else the module's name or class itself
//   substring  AWQ, FP8 and bitsandbytes, `modules_to_not_convert`: the name holds it
//   glob       ModelOpt, `exclude_modules`: shell wildcards over the whole name (fnmatch)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace quantmap {

enum class NameRule : std::uint8_t { names, substring, glob };
std::string_view rule_name(NameRule rule);  // `regex or name`, `substring`, `glob`

class NameMatcher {
 public:
  NameMatcher() = default;
  // A regular expression that does not compile is named in `warnings` and matches nothing.
  NameMatcher(NameRule rule, const std::vector<std::string>& patterns, std::vector<std::string>& warnings);

  bool matches(std::string_view name, std::string_view class_name = "Linear") const;
  bool empty() const { return exact_.empty() && patterns_.empty(); }
  // False where no pattern can tell two names apart that differ in digits only, each for each: none holds a
  // digit, a class or an escape that could.
  bool tells_numbers_apart() const { return numbers_; }

 private:
  struct Pattern {
    std::string text;
    std::shared_ptr<const void> regex;  // pcre2_code
    std::size_t literal = 0;            // of a glob: characters before the first wildcard
  };
  NameRule rule_ = NameRule::names;
  std::unordered_set<std::string> exact_;
  std::vector<Pattern> patterns_;
  bool numbers_ = false;
};

}  // namespace quantmap
