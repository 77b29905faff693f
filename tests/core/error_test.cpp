#include "core/error.hpp"

#include <gtest/gtest.h>

#include <filesystem>  // brings std::quoted, which must not be taken for ours

#include "core/random.hpp"

namespace quantmap {
namespace {

template <typename Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::interrupted, "nothing was thrown");
}

TEST(Errors, LinesHaveTheFormOfTheContract) {
  const Error full =
      error_of([] { fail_input("bad header", "model.safetensors", "length", "at most 100", "900"); });
  EXPECT_STREQ(full.what(), "bad header: model.safetensors: length (expected at most 100, found 900)");
  EXPECT_EQ(full.exit_status(), 3);
  const Error no_file = error_of([] { fail_input("what", "", "detail"); });
  EXPECT_STREQ(no_file.what(), "what: detail");
  const Error usage = error_of([] { fail_usage("--memory", "too small"); });
  EXPECT_STREQ(usage.what(), "--memory: too small");
  EXPECT_EQ(usage.exit_status(), 2);
  EXPECT_EQ(error_of([] { fail("cannot write", "f", ""); }).exit_status(), 1);
  EXPECT_EQ(Error(ErrorKind::interrupted, "").exit_status(), 130);
}

TEST(Errors, LinesStayOneLineWhateverIsInThem) {
  const Error error = error_of([] { fail_input("w\nhat", "fi\rle", "de\x1b[31mtail", "a\nb", "c\xff"); });
  EXPECT_STREQ(error.what(), "w\\x0Ahat: fi\\x0Dle: de\\x1B[31mtail (expected a\\x0Ab, found c\\xFF)");
}

TEST(Quoted, ControlsAndBadUtf8AreEscaped) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"", "\"\""},
      {"plain text", "\"plain text\""},
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
       "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},  // 2, 3, 4 bytes
      {std::string_view("a\0b", 3), "\"a\\x00b\""},
      {"tab\tnew\n", "\"tab\\x09new\\x0A\""},
      {"\x7f", "\"\\x7F\""},
      {"\xc2\x9b", "\"\\xC2\\x9B\""},                    // C1: what terminals take for ESC [
      {"\xe2\x80\xa8", "\"\\xE2\\x80\\xA8\""},           // line separator
      {"\xc0\x80", "\"\\xC0\\x80\""},                    // overlong NUL
      {"\xe0\x80\x80", "\"\\xE0\\x80\\x80\""},           // overlong
      {"\xed\xa0\x80", "\"\\xED\\xA0\\x80\""},           // surrogate
      {"\xf4\x90\x80\x80", "\"\\xF4\\x90\\x80\\x80\""},  // beyond U+10FFFF
      {"\xf5\x80\x80\x80", "\"\\xF5\\x80\\x80\\x80\""},
      {"\xe2\x82", "\"\\xE2\\x82\""},  // cut short
      {"\x80", "\"\\x80\""},
      {"\xff\xfe", "\"\\xFF\\xFE\""},
  };
  for (const auto& [text, wanted] : kCases) {
    EXPECT_EQ(quoted(text), wanted);
    EXPECT_EQ(quoted(std::string(text)), wanted);
    EXPECT_EQ(is_plain_text(text), wanted.find('\\') == std::string_view::npos) << wanted;
  }
}

TEST(Quoted, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(quoted("abcdef", 3), "\"abc…\"");
  EXPECT_EQ(quoted("abc", 3), "\"abc\"");
  EXPECT_EQ(quoted("ab\xe2\x82\xac"
                   "cd",
                   3),
            "\"ab\xe2\x82\xac…\"");
  EXPECT_EQ(quoted(std::string(1000, 'x')).size(), 80 + 2 + std::string_view("…").size());
}

TEST(Quoted, AnyBytesComeOutAsPlainText) {
  SplitMix64 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string text(random.next() % 12, '\0');
    // Half of the bytes near the edges of UTF-8.
    for (char& c : text)
      c = static_cast<char>(random.next() % 2 ? random.next() : 0x7E + random.next() % 0x82);
    ASSERT_TRUE(is_plain_text(quoted(text)));
    ASSERT_TRUE(is_plain_text(quoted(text, 5)));
  }
}

}  // namespace
}  // namespace quantmap
