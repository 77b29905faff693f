// What a tokenizer is given: texts of every shape, and files that it must refuse.
#include "tokenizer/support.hpp"

namespace quantmap::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TokenizerText, ThatIsNotUtf8IsRefusedWithItsOffset) {
  struct Case {
    std::string text;
    int offset;
    std::string why;
  };
  const std::vector<Case> cases = {
      {"ab\xff", 2, "no such byte"},          {"\x80", 0, "continuation first"},
      {"abc\xe4\xbd", 3, "cut off"},          {"\xc0\x80", 0, "overlong NUL"},
      {"x\xed\xa0\x80", 1, "a surrogate"},    {"\xf4\x90\x80\x80", 0, "above U+10FFFF"},
      {"\xc3\xa9\xc3(", 2, "wrong follower"},
  };
  const auto hf = load_tokenizer(demo_dir());
  const auto sentencepiece =
      load_tokenizer(folder_with({{"tokenizer.model", read_text_file(golden("tiny.model"))}}));
  for (const auto& [text, offset, why] : cases)
    for (const Tokenizer* tokenizer : {hf.get(), sentencepiece.get()}) {
      const std::string expected = "not UTF-8 at byte " + std::to_string(offset) + " ";
      EXPECT_THAT(input_error([&] { tokenizer->encode(text); }), HasSubstr(expected)) << why;
      EXPECT_THAT(input_error([&] { tokenizer->pre_tokens(text); }), HasSubstr(expected)) << why;
    }
}

TEST(TokenizerText, MayHoldNulBytes) {
  const auto tokenizer = load_tokenizer(demo_dir());
  const std::string text("a\0b\0", 4);
  EXPECT_EQ(tokenizer->encode(text).size(), 4u);
  std::string joined;
  for (const std::string& piece : tokenizer->pre_tokens(text)) joined += piece;
  EXPECT_EQ(joined, text);
}

// Runs of a megabyte end at once where a quadratic method would take hours; each byte is in some piece.
TEST(TokenizerText, OfAMegabyteInOneRunTakesLinearTime) {
  const std::size_t size = std::size_t{1} << 20;
  std::string mixed, spaced;
  for (std::size_t i = 0; mixed.size() < size; ++i) mixed += static_cast<char>('a' + i * i % 23);
  for (std::size_t i = 0; spaced.size() < size; ++i) spaced += i % 3 == 0 ? "\n" : " ";
  const std::vector<std::string> texts = {std::string(size, 'a'),
                                          std::string(size, ' '),
                                          std::string(size, ' ') + "a",
                                          std::string(size, '7'),
                                          std::string(size, '<'),
                                          mixed,
                                          spaced};
  const auto demo = load_tokenizer(demo_dir());
  const auto spm = load_tokenizer(folder_with({{"tokenizer.json", read_text_file(golden("spm_bpe.json"))}}));
  for (const std::string& text : texts) {
    std::size_t bytes = 0;
    for (const std::string& piece : demo->pre_tokens(text)) bytes += piece.size();
    EXPECT_EQ(bytes, text.size());
    EXPECT_GT(demo->encode(text).size(), 0u);
    EXPECT_GT(spm->encode(text).size(), 0u);
  }
}

TEST(TokenizerText, IsNotMatchedByAnExponentialPattern) {
  json file = small_bpe({"a"}, json::array());
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "(?:a+)+[bc]"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  const auto tokenizer = from_json(file);
  EXPECT_THAT(input_error([&] { tokenizer->encode(std::string(64, 'a')); }),
              HasSubstr("pattern \"(?:a+)+[bc]\" fails at byte 0"));
}

// ---- files

TEST(TokenizerFile, ThatIsMissingIsNamed) {
  EXPECT_THAT(input_error([] { load_tokenizer(folder_with({})); }),
              HasSubstr("tokenizer.json or tokenizer.model"));
  EXPECT_THAT(input_error([] { load_tokenizer("/no/such/model"); }), HasSubstr("/no/such/model"));
  for (const char* text : {"", "no model", "\x0a\xff\xff\xff\xff\x0f"})
    EXPECT_THAT(input_error([&] {
                  load_tokenizer(folder_with({{"tokenizer.model", text}}));
                }),
                HasSubstr("not a SentencePiece model"));
}

TEST(TokenizerFile, WithAnUnknownPieceIsRefusedByName) {
  struct Case {
    std::string path;  // where the piece goes
    json piece;
    std::string named;
  };
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Isolated"}};
  const auto pattern = [&](const std::string& text) {
    json with = split;
    with["pattern"]["Regex"] = text;
    return with;
  };
  const std::vector<Case> cases = {
      {"/model/type", "Unigram", "model: model \"Unigram\" is not supported"},
      {"/model/type", "WordPiece", "\"WordPiece\""},
      {"/model/dropout", 0.1, "dropout"},
      {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"},
      {"/model/unk_token", "<unk>", "model.unk_token: not in the vocabulary"},
      {"/model/vocab/a", -1, "model.vocab[\"a\"]"},
      {"/model/vocab/a", 1, "id 1 is another token's too"},
      {"/model/vocab/a", 0.5, "expected a token id"},
      {"/model/vocab/a", 4294967296, "expected a token id"},
      {"/model/vocab", json::array(), "expected an object"},
      {"/model/merges", "a b", "expected an array"},
      {"/model", "BPE", "expected an object"},
      {"/normalizer", {{"type", "BertNormalizer"}}, "normalizer \"BertNormalizer\" is not supported"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "Nmt"}}}}},
       "normalizers[0]: normalizer \"Nmt\""},
      {"/normalizer", {{"type", "Precompiled"}}, "\"Precompiled\""},
      {"/pre_tokenizer", {{"type", "BertPreTokenizer"}}, "pre-tokenizer \"BertPreTokenizer\""},
      {"/pre_tokenizer", {{"type", "UnicodeScripts"}}, "\"UnicodeScripts\""},
      {"/pre_tokenizer", {{"kind", "ByteLevel"}}, "pre_tokenizer: no key type"},
      {"/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}, "expected one character"},
      {"/pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "last"}}, "never, first or always"},
      {"/pre_tokenizer", pattern("(a"), "pattern \"(a\": missing closing parenthesis"},
      {"/pre_tokenizer", pattern("[a&&b]"), "&& in a class is not supported"},
      {"/pre_tokenizer", pattern("[a[b]]"), "a class in a class is not supported"},
      {"/pre_tokenizer", pattern("a{1,2}+"), "{n,m}+ is not supported"},
      {"/pre_tokenizer", pattern("\\h"), "\\h is not supported"},
      {"/pre_tokenizer", pattern("(*ACCEPT)"), "(* is not supported"},
      {"/pre_tokenizer", pattern("(?m)a"), "(?m is not supported"},
      {"/pre_tokenizer", pattern("(?R)"), "(?R is not supported"},
      {"/pre_tokenizer", pattern("\\"), "a lone backslash"},
      {"/pre_tokenizer", pattern("[a"), "an unclosed class"},
      {"/pre_tokenizer/behavior", "Sideways", "MergedWithNext or Contiguous"},
      {"/pre_tokenizer/pattern", {{"Glob", "*"}}, "expected String or Regex"},
      {"/added_tokens/0/id", 1, "expected 0, as in model.vocab"},
      {"/added_tokens/0/content", 7, "added_tokens[0].content"},
  };
  for (const auto& [path, piece, named] : cases) {
    json file = small_bpe({"a", "b"}, json::array());
    file["pre_tokenizer"] = split;
    file["added_tokens"] = {{{"id", 0}, {"content", "a"}, {"special", false}}};
    file[json::json_pointer(path)] = piece;
    const std::string line = input_error([&] { from_json(file); });
    EXPECT_THAT(line, HasSubstr(named)) << path << " " << piece;
    EXPECT_THAT(line, HasSubstr("tokenizer.json")) << path << " " << piece;
  }
}

TEST(TokenizerFile, NestedWithoutEndIsRefused) {
  for (const std::string& text : {std::string(1 << 20, '['), "{\"normalizer\":" + std::string(1 << 20, '{'),
                                  "{\"model\":" + std::string(1000, '[') + std::string(1000, ']') + "}"})
    EXPECT_THAT(input_error([&] {
                  load_tokenizer(folder_with({{"tokenizer.json", text}}));
                }),
                HasSubstr("tokenizer.json"));
}

TEST(TokenizerFile, ItsFingerprintFollowsWhatDefinesIt) {
  const json file = small_bpe({"a", "b"}, json::array());
  const std::string plain = from_json(file)->fingerprint();
  EXPECT_EQ(plain.size(), 64u);
  EXPECT_EQ(from_json(file)->fingerprint(), plain);
  EXPECT_EQ(from_json(file, R"({"model_max_length": 7})")->fingerprint(), plain) << "no part of it";
  EXPECT_NE(from_json(file, R"({"bos_token": "a"})")->fingerprint(), plain);
  json other = file;
  other["normalizer"] = {{"type", "NFC"}};
  EXPECT_NE(from_json(other)->fingerprint(), plain);
}

}  // namespace
}  // namespace quantmap::testing
