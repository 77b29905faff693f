// Faults of cases/faults.md that tokenizers have had elsewhere: B37, B39, B41, S25.
#include "tokenizer/support.hpp"

namespace quantmap::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- B37: merges

json pairs(const std::vector<std::vector<std::string>>& merges) { return merges; }

TEST(TokenizerMerges, PairsMayHoldSpaces) {
  const json file = small_bpe({"a", " ", "b", "a ", "a b"}, pairs({{"a", " "}, {"a ", "b"}}));
  EXPECT_THAT(from_json(file)->encode("a b"), ElementsAre(4));
}

TEST(TokenizerMerges, StringsAndPairsMeanTheSame) {
  const std::vector<std::string> tokens = {"a", "b", "c", "bc", "ab", "abc"};
  const auto strings = from_json(small_bpe(tokens, {"b c", "a b", "a bc"}));
  const auto as_pairs = from_json(small_bpe(tokens, pairs({{"b", "c"}, {"a", "b"}, {"a", "bc"}})));
  for (const char* text : {"abc", "aabbcc", "ab", "cab", "abcabc"})
    EXPECT_EQ(strings->encode(text), as_pairs->encode(text)) << text;
}

TEST(TokenizerMerges, RankIsThePositionNotTheLength) {
  const std::vector<std::string> tokens = {"a", "b", "c", "bc", "ab"};
  EXPECT_THAT(from_json(small_bpe(tokens, {"b c", "a b"}))->encode("abc"), ElementsAre(0, 3));
  EXPECT_THAT(from_json(small_bpe(tokens, {"a b", "b c"}))->encode("abc"), ElementsAre(4, 2));
}

TEST(TokenizerMerges, EqualRanksGoFromTheLeft) {
  EXPECT_THAT(from_json(small_bpe({"a", "aa"}, {"a a"}))->encode("aaaaa"), ElementsAre(1, 1, 0));
}

TEST(TokenizerMerges, AMergeWhosePartOrResultIsMissingIsRefusedByName) {
  struct Case {
    json merges;
    std::string named, why;
  };
  const std::vector<Case> cases = {
      {{"a b", "x b"}, "\"x\" is not in the vocabulary", "left part"},
      {{"a b", "a y"}, "\"y\" is not in the vocabulary", "right part"},
      {{"b a"}, "\"ba\" is not in the vocabulary", "result"},
      {{"a b", "a  b"}, "model.merges[1] (expected two parts", "a string with two spaces cannot be parsed"},
      {{"ab"}, "model.merges[0] (expected two parts", "no space"},
      {json::array({json::array({"a", "b", "c"})}), "model.merges[0] (expected", "three parts"},
      {{7}, "model.merges[0] (expected", "a number"},
  };
  for (const auto& [merges, named, why] : cases)
    EXPECT_THAT(input_error([&] {
                  from_json(small_bpe({"a", "b", "ab"}, merges));
                }),
                HasSubstr(named))
        << why;
}

// ---- B39: how digits are cut

json with_pre_tokenizer(const json& pre_tokenizer) {
  json file = small_bpe({"a"}, json::array());
  file["pre_tokenizer"] = pre_tokenizer;
  return file;
}

json split(const std::string& kind, const std::string& pattern) {
  return {{"type", "Split"}, {"pattern", {{kind, pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json byte_level(bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

json in_turn(const json& list) { return {{"type", "Sequence"}, {"pretokenizers", list}}; }

std::string published_pattern(const std::string& digits) {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

TEST(TokenizerDigits, EachFamilyCutsThemItsOwnWay) {
  struct Case {
    std::string family;
    json pre_tokenizer;
    std::vector<std::string> pieces;
  };
  const std::vector<Case> cases = {
      {"Llama 3",
       in_turn({split("Regex", published_pattern(R"(\p{N}{1,3})")), byte_level(false)}),
       {" ", "123", "45"}},
      {"Qwen2 and Qwen3",
       in_turn({split("Regex", published_pattern(R"(\p{N})")), byte_level(false)}),
       {" ", "1", "2", "3", "4", "5"}},
      {"SmolLM2",
       in_turn({{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true)}),
       {" ", "1", "2", "3", "4", "5"}},
      {"GPT-2", byte_level(true), {" 12345"}},
  };
  for (const auto& [family, pre_tokenizer, pieces] : cases)
    EXPECT_EQ(from_json(with_pre_tokenizer(pre_tokenizer))->pre_tokens(" 12345"), pieces) << family;
}

TEST(TokenizerDigits, AStringPatternIsLiteralText) {
  EXPECT_THAT(from_json(with_pre_tokenizer(split("String", R"(\d)")))->pre_tokens(R"(1\d2)"),
              ElementsAre("1", R"(\d)", "2"));
  EXPECT_THAT(from_json(with_pre_tokenizer(split("Regex", R"(\d)")))->pre_tokens(R"(1\d2)"),
              ElementsAre("1", R"(\d)", "2"));
  EXPECT_THAT(from_json(with_pre_tokenizer(split("Regex", R"(\d)")))->pre_tokens("a12"),
              ElementsAre("a", "1", "2"));
  EXPECT_THAT(from_json(with_pre_tokenizer(split("String", R"(\d)")))->pre_tokens("a12"), ElementsAre("a12"));
}

// ---- B41: BOS

json bos_template(const std::string& token, int id) {
  return {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", token}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"special_tokens", {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

json with_bos(const json& post_processor) {
  json file = small_bpe({"<s>", "</s>", "a"}, json::array());
  file["post_processor"] = post_processor;
  file["added_tokens"] = {{{"id", 0}, {"content", "<s>"}, {"special", true}, {"normalized", false}}};
  return file;
}

const json kByteLevelProcessor = {{"type", "ByteLevel"}, {"trim_offsets", true}};

TEST(TokenizerBos, ATemplateThatPutsItFirstSaysSoAndEncodeAddsNone) {
  for (const json& post_processor :
       {bos_template("<s>", 0),
        json{{"type", "Sequence"},
             {"processors", {kByteLevelProcessor, bos_template("<s>", 0)}}}}) {  // Llama 3's
    const auto tokenizer = from_json(with_bos(post_processor), R"({"bos_token": "<s>"})");
    EXPECT_TRUE(tokenizer->add_bos());
    EXPECT_EQ(tokenizer->bos(), 0);
    EXPECT_THAT(tokenizer->encode("aa"), ElementsAre(2, 2));
  }
}

TEST(TokenizerBos, WithoutSuchATemplateNoneIsAdded) {
  json plain = bos_template("<s>", 0);
  plain["single"].erase(0);
  for (const json& post_processor : {kByteLevelProcessor, plain, json()}) {  // Qwen2's, the demo's, none
    const auto tokenizer = from_json(with_bos(post_processor), R"({"bos_token": "<s>"})");
    EXPECT_FALSE(tokenizer->add_bos()) << post_processor;
    EXPECT_EQ(tokenizer->bos(), 0);
  }
}

TEST(TokenizerBos, TokenizerConfigDecidesOnlyWhereTokenizerJsonDoesNot) {
  const char* yes = R"({"bos_token": "<s>", "add_bos_token": true})";
  const char* no = R"({"bos_token": "<s>", "add_bos_token": false})";
  EXPECT_TRUE(from_json(with_bos({}), yes)->add_bos());
  EXPECT_FALSE(from_json(with_bos({}), no)->add_bos());
  EXPECT_FALSE(from_json(with_bos(kByteLevelProcessor), yes)->add_bos());
  EXPECT_TRUE(from_json(with_bos(bos_template("<s>", 0)), no)->add_bos());
}

TEST(TokenizerBos, IdsComeFromTokenizerConfigElseFromTheModelsConfig) {
  struct Case {
    std::vector<std::pair<std::string, std::string>> files;
    std::optional<std::int32_t> bos, eos;
    std::string why;
  };
  const std::vector<Case> cases = {
      {{{"tokenizer_config.json",
         R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}})"},
        {"config.json", R"({"bos_token_id": 2, "eos_token_id": 2})"}},
       0,
       1,
       "names, as a string or an object, come first"},
      {{{"tokenizer_config.json", R"({"bos_token": null})"},
        {"config.json", R"({"bos_token_id": 2, "eos_token_id": [1, 2]})"}},
       std::nullopt,
       1,
       "null means none (Qwen2); of a list the first counts"},
      {{{"generation_config.json", R"({"bos_token_id": 2})"}, {"config.json", R"({"eos_token_id": 1})"}},
       2,
       1,
       "generation_config.json is last"},
      {{}, std::nullopt, std::nullopt, "nothing says"},
  };
  for (auto [files, bos, eos, why] : cases) {
    files.emplace_back("tokenizer.json", with_bos({}).dump());
    const auto tokenizer = load_tokenizer(folder_with(files));
    EXPECT_EQ(tokenizer->bos(), bos) << why;
    EXPECT_EQ(tokenizer->eos(), eos) << why;
  }
}

TEST(TokenizerBos, WhatContradictsItselfIsRefused) {
  EXPECT_THAT(input_error([] { from_json(with_bos({}), R"({"bos_token": "<bos>"})"); }),
              HasSubstr("bos_token: \"<bos>\" is not in the vocabulary"));
  EXPECT_THAT(input_error([] { from_json(with_bos(bos_template("</s>", 1)), R"({"bos_token": "<s>"})"); }),
              HasSubstr("puts token 1 before a text, but BOS is 0"));
  EXPECT_THAT(input_error([] {
                from_json(with_bos({{"type", "Sequence"},
                                    {"processors", {bos_template("<s>", 0), bos_template("<s>", 0)}}}));
              }),
              HasSubstr("a second token before the text"));
  EXPECT_THAT(input_error([] {
                from_json(with_bos({{"type", "BertProcessing"}}));
              }),
              HasSubstr("post-processor \"BertProcessing\" is not supported"));
}

// ---- S25: special-token text

TEST(TokenizerSpecialText, IsLiteralAndOtherAddedTokensAreNot) {
  json file = small_bpe({"<", "s", ">", "t"}, json::array());
  file["added_tokens"] = {{{"id", 4}, {"content", "<s>"}, {"special", true}, {"normalized", false}},
                          {{"id", 5}, {"content", "<t>"}, {"special", false}, {"normalized", false}}};
  const auto tokenizer = from_json(file);
  EXPECT_THAT(tokenizer->encode("<s><t>"), ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(tokenizer->vocab_size(), 6);
}

TEST(TokenizerSpecialText, OfTheDemoTokenizerIsLiteral) {
  const auto tokenizer = load_tokenizer(demo_dir());
  const Ids ids = tokenizer->encode("a<|endoftext|>b");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->eos()), 0);
  EXPECT_GT(ids.size(), 3u);
}

}  // namespace
}  // namespace quantmap::testing
