// Files of token ids, right and wrong.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "evals/protocol.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

std::string file_with(const std::string& text) {
  const auto path = testing::fresh_dir("token_ids") / "ids.json";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(TokenIds, AreReadAsWritten) {
  EXPECT_EQ(read_token_ids(file_with("[[0, 1, 2], [99, 0, 5]]"), 100),
            (std::vector<std::vector<std::int32_t>>{{0, 1, 2}, {99, 0, 5}}));
  EXPECT_EQ(read_token_ids(file_with(" [ [ 7,\n8 ] ]\n"), 100),
            (std::vector<std::vector<std::int32_t>>{{7, 8}}));
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
