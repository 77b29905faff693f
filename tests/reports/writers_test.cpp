// One table, four spellings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "reports/text.hpp"
#include "reports/writers.hpp"

namespace quantmap {
namespace {

using ::testing::HasSubstr;
constexpr std::int64_t operator""_i(unsigned long long n) { return static_cast<std::int64_t>(n); }
const Value kNull = std::monostate();

Table sample() {
  return {
      .title = "What does each scheme cost?",
      .columns =
          {{"scheme"}, {"kl_mean", 4}, {"ppl", 6}, {"weight_bytes"}, {"windows"}, {"kv_bytes", 4}, {"note"}},
      .rows = {{"BF16", 0.0, 24.498512345, 269030016.0, 79_i, 23040.0, "the reference"},
               {"W4A16+KVFP8", 0.123456789, 27.5, 81111111.0, 79_i, kNull, "flattered: été 量化"},
               {"NVFP4", 3.2e-5, 1234567.8, 8.0, 7_i, 11520.5, ""}},
      .notes = {"fewer than 20 windows"}};
}

TEST(TableWriter, FoldsAt80ColumnsAndRepeatsTheFirst) {
  EXPECT_EQ(write(sample(), OutputFormat::table, 80), R"(What does each scheme cost?

scheme         kl_mean      ppl  weight_bytes  windows  kv_bytes
-----------  ---------  -------  ------------  -------  --------
BF16                 0  24.4985     269030016       79     23040
W4A16+KVFP8     0.1235  27.5000      81111111       79         -
NVFP4        3.200e-05  1234568             8        7     11520

scheme       note
-----------  -------------------
BF16         the reference
W4A16+KVFP8  flattered: été 量化
NVFP4

note: fewer than 20 windows
)");
}

TEST(TableWriter, IsOneBlockAt200Columns) {
  EXPECT_EQ(write(sample(), OutputFormat::table, 200), R"(What does each scheme cost?

scheme         kl_mean      ppl  weight_bytes  windows  kv_bytes  note
-----------  ---------  -------  ------------  -------  --------  -------------------
BF16                 0  24.4985     269030016       79     23040  the reference
W4A16+KVFP8     0.1235  27.5000      81111111       79         -  flattered: été 量化
NVFP4        3.200e-05  1234568             8        7     11520

note: fewer than 20 windows
)");
}

TEST(TableWriter, CutsNothingHoweverNarrow) {
  const std::string narrow = write(sample(), OutputFormat::table, 1);
  for (const char* part : {"weight_bytes", "269030016", "flattered: été 量化", "3.200e-05"})
    EXPECT_THAT(narrow, HasSubstr(part));
  EXPECT_EQ(write({.title = "", .columns = {{"a"}}, .rows = {{"x"}}, .notes = {}}, OutputFormat::table, 0),
            "a\n-\nx\n");
}

TEST(TableWriter, FitsTheWidthWhereverTwoColumnsDo) {
  Table wide;
  std::vector<Value> row;
  for (int i = 0; i < 40; ++i) {
    wide.columns.push_back({"column_" + std::to_string(i)});
    row.emplace_back(std::int64_t{i});
  }
  wide.rows = {row};
  for (int width = 20; width < 130; ++width) {
    const std::string text = write(wide, OutputFormat::table, width);
    std::size_t start = 0;
    for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
      ASSERT_LE(end - start, static_cast<std::size_t>(width));
    ASSERT_THAT(text, HasSubstr("column_39"));
  }
}

TEST(TableWriter, SaysWhenThereIsNothing) {
  EXPECT_EQ(
      write({.title = "", .columns = {{"run"}, {"model"}}, .rows = {}, .notes = {}}, OutputFormat::table, 80),
      "run  model\n---  -----\n(no rows)\n");
  EXPECT_EQ(write({.title = "t", .columns = {}, .rows = {}, .notes = {"n"}}, OutputFormat::table, 80),
            "t\n\nnote: n\n");
}

// What a hostile file name may hold: cursor movement, a title change, C1, a reversed line, broken UTF-8.
const std::string kHostile =
    "a\x1b[2J\x07\r\n\t\x7F\xC2\x9B"
    "31m\xE2\x80\xAE"
    "b\xFFz|<script>";

TEST(Writers, NotesWrapAtTheWidthAndLoseNoWord) {
  const Table table{.title = "",
                    .columns = {},
                    .rows = {},
                    .notes = {"one two three four", "unbreakable-word-of-any-length"}};
  EXPECT_EQ(write(table, OutputFormat::table, 80),
            "note: one two three four\nnote: unbreakable-word-of-any-length\n");
  const std::string narrow =
      write({.title = "t", .columns = {}, .rows = {}, .notes = table.notes}, OutputFormat::table, 14);
  EXPECT_EQ(narrow, "t\n\nnote: one two\n      three\n      four\nnote: unbreakable-word-of-any-length\n");
}

TEST(EveryWriter, LetsNoControlCharacterOfTheDataThrough) {
  const Table table{
      .title = kHostile, .columns = {{kHostile}, {"n"}}, .rows = {{kHostile, 1_i}}, .notes = {kHostile}};
  for (const OutputFormat format :
       {OutputFormat::table, OutputFormat::json, OutputFormat::csv, OutputFormat::md}) {
    const std::string text = write(table, format, 80);
    for (const char* raw : {"\x1b", "\x07", "\x7F", "\xC2\x9B", "\xE2\x80\xAE", "\xFF"})
      EXPECT_EQ(text.find(raw), std::string::npos)
          << static_cast<int>(format) << " " << quoted(std::string(raw));
    EXPECT_EQ(printable(text, true), text) << "valid UTF-8 throughout";
    EXPECT_THAT(text, HasSubstr("a")) << "and still there";
  }
  EXPECT_EQ(
      write({.title = "", .columns = {{"c"}}, .rows = {{kHostile}}, .notes = {}}, OutputFormat::table, 80),
      "c\n" + std::string(60, '-') +
          "\na\\x1B[2J\\x07\\x0D\\x0A\\x09\\x7F\\u{9B}31m\\u{202E}b\\xFFz|<script>\n");
}

TEST(CsvWriter, QuotesByRfc4180AndTellsNullFromEmpty) {
  const Table table{.title = "not in CSV",
                    .columns = {{"plain"}, {"a,b"}, {"with \"quotes\""}},
                    .rows = {{"x", "1,2", "say \"hi\""}, {kNull, "", "two\nlines"}, {0.1, 42_i, 1e300}},
                    .notes = {"not in CSV"}};
  EXPECT_EQ(write(table, OutputFormat::csv),
            "plain,\"a,b\",\"with \"\"quotes\"\"\"\r\n"
            "x,\"1,2\",\"say \"\"hi\"\"\"\r\n"
            ",\"\",\"two\nlines\"\r\n"
            "0.1,42,1e+300\r\n");
}

// Doubles that a rounded spelling would change.
const std::vector<double> kDoubles = {0.1 + 0.2,
                                      1.0 / 3,
                                      24.498512345678901,
                                      5e-324,
                                      1.7976931348623157e308,
                                      -0.0,
                                      123456789012345678.0,
                                      9007199254740993.0,
                                      1e-5,
                                      4.125};

TEST(CsvWriter, KeepsEveryDigit) {
  for (const double value : kDoubles) {
    const std::string text =
        write({.title = "", .columns = {{"x", 2}}, .rows = {{value}}, .notes = {}}, OutputFormat::csv);
    EXPECT_EQ(std::strtod(text.c_str() + 3, nullptr), value) << text;
  }
}

TEST(JsonWriter, KeepsEveryDigitAndEveryText) {
  Table table{.title = "not in JSON", .columns = {{"x", 2}, {"t"}}, .rows = {}, .notes = {"not in JSON"}};
  for (const double value : kDoubles) table.rows.push_back({value, "été \"量化\" \\ \n \x1b"});
  table.rows.push_back({std::numeric_limits<std::int64_t>::max(), kNull});
  const auto json = nlohmann::ordered_json::parse(write(table, OutputFormat::json));
  ASSERT_EQ(json.size(), kDoubles.size() + 1);
  for (std::size_t i = 0; i < kDoubles.size(); ++i) {
    EXPECT_EQ(json[i]["x"].get<double>(), kDoubles[i]);
    EXPECT_EQ(json[i]["t"], "été \"量化\" \\ \n \x1b");
    EXPECT_EQ(json[i].begin().key(), "x") << "columns keep their order";
  }
  EXPECT_EQ(json.back()["x"].get<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(json.back()["t"].is_null());
}

TEST(JsonWriter, SpellsWhatJsonCannotHold) {
  const Table table{.title = "",
                    .columns = {{"a"}, {"a"}, {"a_2"}, {"t"}},
                    .rows = {{1_i, 2_i, std::numeric_limits<double>::infinity(), "\xFF\xFE"}},
                    .notes = {}};
  const auto json = nlohmann::json::parse(write(table, OutputFormat::json));
  EXPECT_EQ(json[0]["a"], 1);
  EXPECT_EQ(json[0]["a_2"], 2) << "a second column of a name is not lost";
  EXPECT_TRUE(json[0]["a_2_2"].is_null());
  EXPECT_EQ(json[0]["t"], "\uFFFD\uFFFD");
  EXPECT_EQ(write({.title = "", .columns = {{"a"}}, .rows = {}, .notes = {}}, OutputFormat::json), "[]\n");
  EXPECT_EQ(write({.title = "", .columns = {{"a"}}, .rows = {{1_i}, {2_i}}, .notes = {}}, OutputFormat::json),
            "[\n  {\"a\":1},\n  {\"a\":2}\n]\n");
}

TEST(MarkdownWriter, WritesAGitHubTable) {
  EXPECT_EQ(write(sample(), OutputFormat::md), R"(**What does each scheme cost?**

| scheme | kl_mean | ppl | weight_bytes | windows | kv_bytes | note |
| :-- | --: | --: | --: | --: | --: | :-- |
| BF16 | 0 | 24.4985 | 269030016 | 79 | 23040 | the reference |
| W4A16+KVFP8 | 0.1235 | 27.5000 | 81111111 | 79 | - | flattered: été 量化 |
| NVFP4 | 3.200e-05 | 1234568 | 8 | 7 | 11520 |  |

- fewer than 20 windows
)");
}

TEST(MarkdownWriter, TakesTextForText) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"a|b", "a\\|b"},  // would end the cell
      {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
      {"a & b &lt;", "a &amp; b &amp;lt;"},
      {"*bold* `code`", "\\*bold\\* \\`code\\`"},
      {"[x](javascript:y)", "\\[x\\](javascript:y)"},
      {"\\|", "\\\\\\|"},              // an escape of our own must not be undone
      {"FP8_DYNAMIC", "FP8_DYNAMIC"},  // inside a word `_` means nothing
      {"_x_", "\\_x\\_"},
      {"$a$ ~~b~~", "\\$a\\$ \\~\\~b\\~\\~"},
      {"line\nbreak", "line\\\\x0Abreak"},  // a row is one line
  };
  for (const auto& [text, escaped] : cases)
    EXPECT_EQ(write({.title = "", .columns = {{"c"}}, .rows = {{text}}, .notes = {}}, OutputFormat::md),
              "| c |\n| :-- |\n| " + std::string(escaped) + " |\n");
  const std::vector<std::pair<const char*, const char*>> notes = {
      {"# heading", "- \\# heading\n"},     {"- item", "- \\- item\n"},       {"12. item", "- 12\\. item\n"},
      {"0.5 is half", "- 0\\.5 is half\n"}, {"20 windows", "- 20 windows\n"}, {"", "- \n"},
  };
  for (const auto& [text, line] : notes)
    EXPECT_EQ(write({.title = "", .columns = {}, .rows = {}, .notes = {text}}, OutputFormat::md), line);
}

TEST(Numbers, HaveTheDigitsOfTheirColumnAndWholeOnesAllOfThem) {
  struct Case {
    double value;
    int digits;
    const char* text;
  };
  const std::vector<Case> cases = {
      {0.0, 6, "0"},
      {-0.0, 6, "0"},  // no sign that means nothing
      {24.498512345, 6, "24.4985"},
      {24.5, 6, "24.5000"},       // six digits are known, so six are shown
      {9.9999996, 6, "10.0000"},  // rounding that gains a digit
      {0.000123456789, 4, "0.0001235"},
      {0.0000123456789, 4, "1.235e-05"},
      {-0.5, 3, "-0.500"},
      {269030016.0, 6, "269030016"},  // bytes are counts
      {123456.4, 6, "123456"},        // no bare point
      {-99999.97, 6, "-100000"},
      {1234567.5, 4, "1234568"},  // not 1.235e+06
      {1e15, 4, "1.000e+15"},
      {1.5e300, 4, "1.500e+300"},
      {std::numeric_limits<double>::infinity(), 4, "inf"},
      {std::numeric_limits<double>::quiet_NaN(), 4, "nan"},
  };
  for (const Case& c : cases) EXPECT_EQ(short_number(c.value, c.digits), c.text);
}

TEST(Width, IsInTerminalColumns) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("été"), 3u);
  EXPECT_EQ(display_width("e\u0301te\u0301"), 3u);  // combining accents
  EXPECT_EQ(display_width("量化"), 4u);
  EXPECT_EQ(display_width("ﾊﾝ"), 2u);  // half-width forms
  EXPECT_EQ(display_width("🙂"), 2u);
}

TEST(TerminalWidth, FollowsColumnsAndFallsBack) {
  ::unsetenv("COLUMNS");
  const int unset = terminal_width(77);
  EXPECT_TRUE(unset == 77 || ::isatty(STDOUT_FILENO)) << unset;
  ::setenv("COLUMNS", "123", 1);
  EXPECT_EQ(terminal_width(), 123);
  for (const char* nonsense : {"", "wide", "-5", "0", "80x", "99999999999999"}) {
    ::setenv("COLUMNS", nonsense, 1);
    EXPECT_EQ(terminal_width(77), unset) << nonsense;
  }
  ::unsetenv("COLUMNS");
}

TEST(OutputFormats, AreFourAndNoOther) {
  EXPECT_EQ(parse_output_format("table"), OutputFormat::table);
  EXPECT_EQ(parse_output_format("json"), OutputFormat::json);
  EXPECT_EQ(parse_output_format("csv"), OutputFormat::csv);
  EXPECT_EQ(parse_output_format("md"), OutputFormat::md);
  for (const char* other : {"", "JSON", "html", "markdown"}) {
    try {
      parse_output_format(other);
      ADD_FAILURE() << other;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(
          std::string(error.what()),
          "--format: unknown format (expected table, json, csv or md, found \"" + std::string(other) + "\")");
    }
  }
}

}  // namespace
}  // namespace quantmap
