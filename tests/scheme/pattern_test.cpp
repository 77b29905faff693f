#include "scheme/pattern.hpp"

#include <gtest/gtest.h>

#include "refusal.hpp"

namespace quantmap {
namespace {

using testing::expect_refused;

struct Match {
  std::string_view pattern, module;
  bool matches;
};

constexpr Match kMatches[] = {
    {"lm_head", "lm_head", true},
    {"lm_head", "language_model.lm_head", false},  // a name is the whole path (faults.md, B57)
    {"/lm_head/", "language_model.lm_head", true},
    {"/^lm_head$/", "language_model.lm_head", false},
    {"/mlp\\./", "model.layers.3.mlp.down_proj", true},
    {"/mlp\\./", "model.layers.3.mlp_x.down_proj", false},
    {"/mlp.gate$/", "model.layers.0.mlp.gate", true},  // B57: gate, not gate_proj
    {"/mlp.gate$/", "model.layers.0.mlp.gate_proj", false},
    {"/layers\\.(0|1)\\./", "model.layers.1.mlp.up_proj", true},
    {"/layers\\.(0|1)\\./", "model.layers.11.mlp.up_proj", false},
    {"/a{1,2}=b/", "xaa=b", true},  // commas and equals signs belong to the regex
    {"/a\\/b/", "a/b", true},       // an escaped slash is a slash
    {"/^(?!.*down)/", "model.layers.0.mlp.up_proj", true},
    {"/^(?!.*down)/", "model.layers.0.mlp.down_proj", false},
    {"*", "anything.at.all", true},
    {"*", "", true},
    {"/./", "", false},
};

TEST(ModulePattern, NamesAreExactAndRegexesSearch) {
  for (const Match& row : kMatches)
    EXPECT_EQ(ModulePattern(row.pattern).matches(row.module), row.matches)
        << row.pattern << " on " << row.module;
}

TEST(ModulePattern, BadOnesAreRefusedWithThePlace) {
  const std::pair<std::string_view, std::string_view> kBad[] = {
      {"/(/", "regex \"/(/\": at position 1 after the /: missing closing parenthesis"},
      {"/a[/", "missing terminating ]"},
      {"/*a/", "at position 0 after the /: quantifier does not follow a repeatable item"},
      {"/abc", "the closing / is missing"},
      {"/", "the closing / is missing"},
      {"/abc\\/", "the closing / is missing"},  // the slash is escaped
      {"/a/i", "text after the closing /: \"i\""},
      {"/a/b/", "a slash inside is written \\/"},
      {"//", "it is empty"},
      {"", "it is empty"},
      {"*lm_head*", "\"*\" is in no module path"},   // a glob, as ModelOpt writes it
      {"re:.*gate$", "\":\" is in no module path"},  // as compressed-tensors writes it
      {"/a\nb/", "control characters"},
      {"/a\xff/", "invalid UTF-8"},
      {"/(((a{999}){999}){999})/", "regular expression is too large"},
      {"/(?:a\\C)/", "\\C"},
  };
  for (const auto& [text, part] : kBad)
    expect_refused([&, t = text] { ModulePattern pattern(t); }, ErrorKind::usage, std::string(part),
                   std::string(text));
}

TEST(ModulePattern, CatastrophicBacktrackingEndsInAnError) {
  // The b at the end is there, so that PCRE2 cannot refuse the subject at a glance.
  const ModulePattern pattern("/^(a|aa|a?a)*b$/");
  expect_refused([&] { pattern.matches(std::string(200, 'a') + "cb"); }, ErrorKind::usage,
                 "match limit exceeded", pattern.text());
}

TEST(SplitOutsideRegex, SeparatorsInsideSlashesStay) {
  const auto parts = split_outside_regex("w=int8,ignore=/a{1,2},b\\/c,/,a=int8", ",");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1], "ignore=/a{1,2},b\\/c,/");
  EXPECT_EQ(split_outside_regex("", ",").size(), 1U);
  EXPECT_EQ(split_outside_regex(",", ",").size(), 2U);
  EXPECT_EQ(split_outside_regex("ignore=/open,rest", ",").size(), 1U);  // refused later: not closed
  EXPECT_EQ(split_outside_regex("a/b c/d", " ").size(), 2U);            // a slash elsewhere opens nothing
  EXPECT_EQ(split_outside_regex("@x=/y.json b", " ").size(), 2U);       // nor in the path of a recipe
}

}  // namespace
}  // namespace quantmap
