// Against golden answers of PyPI's tokenizers and sentencepiece (tests/golden/tokenizer/make_golden.py).
#include "tokenizer/support.hpp"

namespace quantmap::testing {
namespace {

using nlohmann::json;

TEST(TokenizerReference, PiecesAreThoseOfTheReferenceForEveryNormalizerAndPreTokenizer) {
  const json file = golden_json("splits.json");
  const auto texts = file.at("texts").get<std::vector<std::string>>();
  ASSERT_GE(file.at("cases").size(), 40u);
  for (const json& one : file.at("cases")) {
    json tokenizer = small_bpe({"a"}, json::array());
    tokenizer["normalizer"] = one.at("normalizer");
    tokenizer["pre_tokenizer"] = one.at("pre_tokenizer");
    const auto loaded = from_json(tokenizer);
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(loaded->pre_tokens(texts[i]), one.at("pieces")[i].get<std::vector<std::string>>())
          << one.at("name") << ", text " << i << ": " << quoted(texts[i], 200);
  }
}

// The patch replaces keys of the file and, of its model, keys of the model.
json patched(json base, const json& patch) {
  for (const auto& [key, value] : patch.items()) {
    if (key == "model")
      base[key].update(value);
    else
      base[key] = value;
  }
  return base;
}

json base_tokenizer(const std::string& name) {
  return json::parse(read_text_file(name == "demo" ? demo_dir() / "tokenizer.json" : golden("spm_bpe.json")));
}

TEST(TokenizerReference, IdsAreThoseOfTheReferenceForEveryVariant) {
  const json file = golden_json("encodes.json");
  const auto texts = file.at("texts").get<std::vector<std::string>>();
  ASSERT_GE(file.at("cases").size(), 25u);
  for (const json& one : file.at("cases")) {
    const auto loaded = from_json(patched(base_tokenizer(one.at("base")), one.at("patch")));
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(loaded->encode(texts[i]), one.at("ids")[i].get<Ids>())
          << one.at("name") << ", text " << i << ": " << quoted(texts[i], 200);
  }
}

void expect_whole_text(const Tokenizer& tokenizer, const json& expected) {
  const Ids ids = tokenizer.encode(read_text_file(demo_dir() / "text.txt"));
  EXPECT_EQ(ids.size(), expected.at("count").get<std::size_t>());
  EXPECT_EQ(sha256_of_ids(ids), expected.at("sha256").get<std::string>());
  const auto first = expected.at("first").get<Ids>();
  EXPECT_TRUE(ids.size() >= first.size() && std::equal(first.begin(), first.end(), ids.begin()));
}

TEST(TokenizerReference, TheDemoTextHasItsIdsWithTheDemoTokenizer) {
  const auto tokenizer = load_tokenizer(demo_dir());
  expect_whole_text(*tokenizer, golden_json("encodes.json").at("whole_text").at("demo"));
  EXPECT_EQ(tokenizer->encode(read_text_file(demo_dir() / "text.txt")).size(),
            40925u);  // datasets/demo/README.md
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  EXPECT_EQ(tokenizer->bos(), 0);
  EXPECT_EQ(tokenizer->eos(), 0);
  EXPECT_FALSE(tokenizer->add_bos());
  EXPECT_EQ(tokenizer->kind(), "tokenizer.json (byte-level BPE)");
}

TEST(TokenizerReference, TheDemoTextHasItsIdsWithASentencePieceStyleBpe) {
  const auto tokenizer = from_json(base_tokenizer("spm"));
  expect_whole_text(*tokenizer, golden_json("encodes.json").at("whole_text").at("spm"));
  EXPECT_EQ(tokenizer->kind(), "tokenizer.json (BPE)");
}

TEST(TokenizerReference, ASentencePieceModelGivesTheLibrarysIds) {
  const json expected = golden_json("sentencepiece.json");
  const auto tokenizer =
      load_tokenizer(folder_with({{"tokenizer.model", read_text_file(golden("tiny.model"))}}));
  const auto texts = expected.at("texts").get<std::vector<std::string>>();
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer->encode(texts[i]), expected.at("ids")[i].get<Ids>()) << quoted(texts[i], 200);
  expect_whole_text(*tokenizer, expected.at("whole_text"));
  EXPECT_EQ(tokenizer->vocab_size(), expected.at("size").get<std::int64_t>());
  EXPECT_EQ(tokenizer->bos(), expected.at("bos").get<std::int32_t>());
  EXPECT_EQ(tokenizer->eos(), expected.at("eos").get<std::int32_t>());
  EXPECT_TRUE(tokenizer->add_bos());
  EXPECT_EQ(tokenizer->kind(), "tokenizer.model (SentencePiece)");
}

}  // namespace
}  // namespace quantmap::testing
