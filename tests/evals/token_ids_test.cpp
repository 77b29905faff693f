// Files of token ids, right and wrong.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "evals/protocol.hpp"
#include "evals/token_ids.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

std::string file_with(const std::string& text) {
  const auto path = testing::fresh_dir("token_ids") / "ids.json";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(TokenIds, AreReadAsWritten) {
  using Ids = std::vector<std::int32_t>;
  const auto windows = read_token_ids(file_with("[[0, 1, 2], [99, 0, 5]]"), 100);
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0].ids, (Ids{0, 1, 2}));
  EXPECT_EQ(windows[1].ids, (Ids{99, 0, 5}));
  EXPECT_FALSE(has_masks(windows));
  EXPECT_EQ(read_token_ids(file_with(" [ [ 7,\n8 ] ]\n"), 100)[0].ids, (Ids{7, 8}));
}

TEST(TokenIds, MayBringAMaskAndLabelsAndLengthsOfTheirOwn) {
  const auto windows = read_token_ids(
      file_with(R"([{"ids": [1, 2, 3, 4], "score": [1, 0, true, 1], "segment": ["u", "u", "a", "a"]},
                    {"ids": [5, 6], "segment": "a"}, {"ids": [7, 8, 9], "score": [0, 1, 0]}])"),
      100);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_TRUE(has_masks(windows));
  const std::vector<EvalWindow> cut = windows_of_ids(windows, Protocol{});
  EXPECT_EQ(cut[0].targets, (std::vector<std::int32_t>{-1, 3, 4, -1}));  // the token itself, not its row
  EXPECT_EQ(cut[0].weight, 2);
  EXPECT_EQ(cut[1].targets, (std::vector<std::int32_t>{6, -1}));
  EXPECT_EQ(cut[2].targets, (std::vector<std::int32_t>{8, -1, -1}));
  const Segments segments = segments_of(windows, cut);
  EXPECT_EQ(segments.names, (std::vector<std::string>{"a", ""}));  // `u` is never scored
  EXPECT_EQ(segments.of_token, (std::vector<std::vector<std::uint32_t>>{{0, 0}, {0}, {1}}));
  const std::vector<IdWindow> plain = {{{1, 2}, {}, {}}};
  EXPECT_TRUE(segments_of(plain, windows_of_ids(plain, Protocol{})).names.empty());
}

struct Refusal {
  const char* text;
  std::vector<std::string> parts;  // of the error's line, beside the file's name
  const char* reason;
};
TEST(TokenIds, RefusesEverythingElse) {
  const std::string deep(100000, '['), long_text = "[[1,\"" + std::string(100000, 'x') + "\"]]";
  const Refusal cases[] = {
      {"", {"not JSON"}, "an empty file"},
      {"not json", {"not JSON"}, "text"},
      {"[[1, 2], [3, 4]", {"not JSON"}, "cut short"},
      {"[[1, 2]] [[3, 4]]", {"not JSON"}, "two documents"},
      {"[[1, 2,]]", {"not JSON"}, "a trailing comma"},
      {"[[1, 1e999]]", {"not JSON"}, "a number beyond all"},
      {"\xff\xfe[[1,2]]", {"not JSON"}, "another encoding"},
      {deep.c_str(), {"not JSON"}, "deep nesting must not exhaust the stack"},
      {"{\"ids\": [[1, 2]]}", {"array of arrays", "object"}, "an object"},
      {"null", {"array of arrays", "null"}, "null"},
      {"[]", {"no windows"}, "no windows"},
      {"[1, 2, 3]", {"window 0", "array of arrays", "number"}, "a flat list"},
      {"[[1, 2], 7]", {"window 1", "number"}, "a number among windows"},
      {"[[1, 2], []]", {"window 1", "2", "0"}, "an empty window"},
      {"[[1]]", {"window 0", "2 ids or more", "1"}, "nothing to predict"},
      {"[[1, 2.0]]", {"window 0, position 1", "integer", "2.0"}, "a whole float is a float"},
      {"[[1, 2.5]]", {"window 0, position 1", "integer", "2.5"}, "a fraction"},
      {"[[1, \"2\"]]", {"window 0, position 1", "integer", "string"}, "a string"},
      {"[[1, \"a\\nb\"]]", {"window 0, position 1", "integer"}, "a string that would break the line"},
      {"[[1, true]]", {"window 0, position 1", "integer", "boolean"}, "a boolean is no number"},
      {"[[1, null]]", {"window 0, position 1", "integer", "null"}, "null"},
      {"[[1, [2]]]", {"window 0, position 1", "integer"}, "an array too deep"},
      {"[[1, 2], [3, -1]]", {"window 1, position 1", "0 to 99", "-1"}, "negative"},
      {R"([{"ids": [1, 2], "mask": [1, 1]}])",
       {"window 0", "ids, score and segment", "mask"},
       "a key that is none"},
      {R"([{"score": [1, 1]}])", {"window 0, ids", "no such key"}, "no ids"},
      {R"([{"ids": [1, 2], "score": [1]}])", {"window 0, score", "2 values", "one of 1"}, "a short mask"},
      {R"([{"ids": [1, 2], "score": 1}])", {"window 0, score", "2 values", "number"}, "no list"},
      {R"([{"ids": [1, 2], "score": [0, 2]}])", {"score of position 1", "0 or 1", "2"}, "no flag"},
      {R"([{"ids": [1, 2], "score": [1, 0]}])", {"window 0, score", "none"}, "nothing can be scored"},
      {R"([{"ids": [1, 2], "segment": ["a"]}])", {"window 0, segment", "one of 1"}, "too few labels"},
      {R"([{"ids": [1, 2], "segment": ["a", 3]}])",
       {"window 0, segment", "number"},
       "a label that is no text"},
      {R"([{"ids": [1, 2], "segment": "a\nb"}])",
       {"window 0, segment", "plain text"},
       "a label of two lines"},
      {"[[1, 100]]", {"window 0, position 1", "0 to 99", "100"}, "one past the vocabulary"},
      {"[[1, 4294967297]]", {"window 0, position 1", "4294967297"}, "1 in 32 bits"},
      {"[[1, 18446744073709551615]]", {"18446744073709551615"}, "-1 in 64 bits"},
      {"[[1, 18446744073709551616]]", {"window 0, position 1", "integer"}, "beyond 64 bits"},
      {"[[1, 2, 3], [4, 5]]", {"window 1", "3 ids", "2"}, "ragged"},
      {long_text.c_str(), {"window 0, position 1", "integer"}, "a line of 100,000 characters helps nobody"},
  };
  for (const Refusal& c : cases) {
    try {
      read_token_ids(file_with(c.text), 100);
      ADD_FAILURE() << c.reason << ": not refused";
    } catch (const Error& error) {
      const std::string line = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::input) << c.reason;
      EXPECT_EQ(line.find('\n'), std::string::npos) << c.reason << ": " << line;
      EXPECT_LT(line.size(), 500U) << c.reason;
      EXPECT_NE(line.find("ids.json"), std::string::npos) << line;
      for (const std::string& part : c.parts)
        EXPECT_NE(line.find(part), std::string::npos) << c.reason << ": " << part << " in " << line;
    }
  }
}

TEST(TokenIds, AMissingFileIsNamed) {
  try {
    read_token_ids("no/such/ids.json", 100);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("no/such/ids.json"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quantmap
