// GGUF vocabularies, from files written here.
#include <cmath>
#include <functional>
#include <limits>

#include "tokenizer/gguf_file.hpp"
#include "tokenizer/gguf_pre.hpp"
#include "tokenizer/support.hpp"

namespace quantmap::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Tokenizer> from_gguf(const GgufWriter& file) {
  return load_tokenizer(folder_with({{"model.gguf", file.bytes()}}) / "model.gguf");
}

constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4;

// ---- byte-level BPE

GgufWriter bpe(const std::string& pre) {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
  return file;
}

// ids:                                 0    1    2    3     4      5       6      7
const std::vector<std::string> kBpe = {"a", "b", "<", ">", "\u0120", "ab", "<b>", "[x]"};

TEST(GgufBpe, UserDefinedTokensAreMatchedAndControlTokensAreLiteral) {
  const auto tokenizer =
      from_gguf(bpe("gpt-2")
                    .texts("tokenizer.ggml.tokens", kBpe)
                    .texts("tokenizer.ggml.merges", {"a b"})
                    .integers("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, kControl, kUserDefined}));
  EXPECT_THAT(tokenizer->encode("ab<b>[x]a b"), ElementsAre(5, 2, 1, 3, 7, 0, 4, 1));
  EXPECT_FALSE(tokenizer->bos());
  EXPECT_FALSE(tokenizer->add_bos());
}

TEST(GgufBpe, LongerUserDefinedTokensComeFirstWhereverTheyAre) {
  const auto tokenizer =
      from_gguf(bpe("gpt-2")
                    .texts("tokenizer.ggml.tokens", {"a", "b", "aa", "aab", "ab"})
                    .texts("tokenizer.ggml.merges", {"a b"})
                    .integers("tokenizer.ggml.token_type", {1, 1, kUserDefined, kUserDefined, 1}));
  // llama.cpp takes aab out before it looks for aa; leftmost-longest would give aa, aab's rest.
  EXPECT_THAT(tokenizer->encode("aaab"), ElementsAre(0, 3));
}

TEST(GgufBpe, LlamaThreeTakesPiecesThatAreTokensWholeAndStartsWithBos) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "bc", "abc"};
  const auto file = [&](const std::string& pre) {
    return bpe(pre)
        .texts("tokenizer.ggml.tokens", tokens)
        .texts("tokenizer.ggml.merges", {"b c", "a b"})
        .number("tokenizer.ggml.bos_token_id", 0);
  };
  EXPECT_THAT(from_gguf(file("llama-bpe"))->encode("abc"), ElementsAre(5));
  EXPECT_THAT(from_gguf(file("qwen2"))->encode("abc"), ElementsAre(0, 4));
  EXPECT_TRUE(from_gguf(file("llama-bpe"))->add_bos());
  EXPECT_FALSE(from_gguf(file("qwen2"))->add_bos());
  EXPECT_FALSE(from_gguf(file("llama-bpe").flag("tokenizer.ggml.add_bos_token", false))->add_bos());
}

TEST(GgufBpe, EachPreTokenizerCutsAsItsModelDoes) {
  struct Case {
    std::string pre, text;
    std::vector<std::string> pieces;
    std::string why;
  };
  const std::vector<Case> cases = {
      {"gpt-2",
       " 12345 I'LL",
       {" 12345", " I", "'", "LL"},
       "digits together, contractions in lower case only"},
      {"llama-bpe", " 12345 I'LL", {" ", "123", "45", " I", "'LL"}, "threes"},
      {"qwen2", " 12345 I'LL", {" ", "1", "2", "3", "4", "5", " I", "'LL"}, "one by one"},
      {"smollm", " 12345 I'll", {" ", "1", "2", "3", "4", "5", " I", "'ll"}, "one by one, then GPT-2"},
      {"default", " 12345,a", {" ", "123", "45", ",", "a"}, "four patterns in turn"},
      {"tekken", "HelloWorld 12", {"Hello", "World", " ", "1", "2"}, "case"},
      {"llama-bpe", "a \n\n  b", {"a", " \n\n", " ", " b"}, "lines"},
      {"gpt-2", "a\u180eb\u00a0c", {"a", "\u180e", "b", "\u00a0", "c"}, "U+180E is no space, U+00A0 is one"},
  };
  for (const auto& [pre, text, pieces, why] : cases)
    EXPECT_EQ(from_gguf(bpe(pre)
                            .texts("tokenizer.ggml.tokens", kBpe)
                            .texts("tokenizer.ggml.merges", {"a b"})
                            .number("tokenizer.ggml.bos_token_id", 0))
                  ->pre_tokens(text),
              pieces)
        << pre << ": " << why;
}

TEST(GgufBpe, EveryPreTokenizerCoversTheText) {
  const auto texts = golden_json("splits.json").at("texts").get<std::vector<std::string>>();
  for (const char* pre : {"", "default", "gpt-2", "smollm", "llama3", "dbrx", "qwen2", "qwen35", "tekken"}) {
    ASSERT_NE(find_gguf_pre(pre), nullptr) << pre;
    const auto tokenizer = from_gguf(bpe(pre)
                                         .texts("tokenizer.ggml.tokens", kBpe)
                                         .texts("tokenizer.ggml.merges", {"a b"})
                                         .number("tokenizer.ggml.bos_token_id", 0));
    for (const std::string& text : texts) {
      std::string joined;
      for (const std::string& piece : tokenizer->pre_tokens(text)) joined += piece;
      EXPECT_EQ(joined, text) << pre;
    }
  }
}

// ---- SentencePiece-style

struct Spm {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<float> scores = {0, 0, 0};
  std::vector<std::int32_t> types = {kUnknown, kControl, kControl};
  Spm() {
    const char* digits = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte)
      add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, 6);
  }
  std::int32_t add(const std::string& token, float score, std::int32_t type = kNormal) {
    tokens.push_back(token);
    scores.push_back(score);
    types.push_back(type);
    return static_cast<std::int32_t>(tokens.size()) - 1;
  }
  GgufWriter file() const {
    GgufWriter out;
    out.text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", tokens)
        .floats("tokenizer.ggml.scores", scores)
        .integers("tokenizer.ggml.token_type", types);
    return out;
  }
};

TEST(GgufSpm, MergesByScoreAndFallsBackToBytes) {
  Spm spm;
  const auto mark = spm.add("\u2581", -9), a = spm.add("a", -9), b = spm.add("b", -9);
  const auto ab = spm.add("ab", -2), mark_a = spm.add("\u2581a", -1);
  const auto tokenizer = from_gguf(spm.file());
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(mark_a, b)) << "the better score first";
  EXPECT_THAT(tokenizer->encode("bab"), ElementsAre(mark, b, ab));
  EXPECT_THAT(tokenizer->encode("a\u00e9"), ElementsAre(mark_a, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode(""), IsEmpty());
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_TRUE(tokenizer->add_bos());
  const auto bare = from_gguf(spm.file().flag("tokenizer.ggml.add_space_prefix", false));
  EXPECT_THAT(bare->encode("ab"), ElementsAre(ab));
  EXPECT_THAT(bare->encode("a b"), ElementsAre(a, mark, b));
}

TEST(GgufSpm, TextThatNamesATokenStaysText) {
  Spm spm;  // `<s` and then `<s>` would merge if control tokens took part
  const auto less = spm.add("<", -9), s = spm.add("s", -9), more = spm.add(">", -9),
             less_s = spm.add("<s", -1);
  const auto user = spm.add("<u>", -5, kUserDefined);
  (void)less, (void)s;
  const auto tokenizer = from_gguf(spm.file().flag("tokenizer.ggml.add_space_prefix", false));
  EXPECT_THAT(tokenizer->encode("<s><u>"), ElementsAre(less_s, more, user));
}

TEST(GgufSpm, ASpaceComesBeforeATextAndBehindAUserDefinedToken) {
  Spm spm;
  const auto a = spm.add("a", -9), mark_a = spm.add("\u2581a", -1);
  const auto user = spm.add("<u>", -5, kUserDefined);
  EXPECT_THAT(from_gguf(spm.file())->encode("aa<u>a"), ElementsAre(mark_a, a, user, mark_a));
}

TEST(GgufSpm, TokensAcrossWordsAreFoundThoughWordsAreOtherwiseCut) {
  Spm spm;
  spm.add("\u2581", -9);
  const auto a = spm.add("a", -9), mark_a = spm.add("\u2581a", -8);
  EXPECT_THAT(from_gguf(spm.file())->encode("a a"), ElementsAre(mark_a, mark_a));
  const auto across = spm.add("a\u2581", -1);
  EXPECT_THAT(from_gguf(spm.file().flag("tokenizer.ggml.add_space_prefix", false))->encode("a a"),
              ElementsAre(across, a));
}

// ---- refused

TEST(GgufVocabulary, ThatCannotBeUsedIsRefusedByName) {
  const auto plain = [] {
    return bpe("gpt-2").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"a b"});
  };
  Spm twice, unscored, not_a_number;
  twice.add("a", 0), twice.add("a", 0);
  not_a_number.add("a", std::numeric_limits<float>::quiet_NaN());
  GgufWriter without_bytes;
  without_bytes.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", {"a", "b"})
      .floats("tokenizer.ggml.scores", {0, 0});
  GgufWriter without_scores;
  without_scores.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", {"a", "b"});
  const std::vector<std::pair<GgufWriter, std::string>> cases = {
      {GgufWriter(), "no key tokenizer.ggml.model"},
      {GgufWriter().text("tokenizer.ggml.model", "gpt2"), "no key tokenizer.ggml.tokens"},
      {GgufWriter().text("tokenizer.ggml.model", "t5").texts("tokenizer.ggml.tokens", {"a"}),
       "tokenizer.ggml.model \"t5\" is not supported"},
      {bpe("deepseek-llm").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"a b"}),
       "tokenizer.ggml.pre \"deepseek-llm\" is not supported"},
      {bpe("gpt-2").texts("tokenizer.ggml.tokens", kBpe), "no tokenizer.ggml.merges"},
      {bpe("gpt-2").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"ab"}),
       "tokenizer.ggml.merges[0]"},
      {bpe("gpt-2").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"b a"}),
       "\"ba\" is not in the vocabulary"},
      {bpe("gpt-2").texts("tokenizer.ggml.tokens", {"a", "a"}).texts("tokenizer.ggml.merges", {"a a"}),
       "token 1 \"a\" is there twice"},
      {plain().integers("tokenizer.ggml.token_type", {1}), "tokenizer.ggml.token_type (expected 8 elements"},
      {plain().flag("tokenizer.ggml.add_bos_token", true), "BOS is to be added"},
      {plain().number("tokenizer.ggml.bos_token_id", 8).flag("tokenizer.ggml.add_bos_token", true),
       "BOS is to be added"},
      {bpe("gpt-2").texts("tokenizer.ggml.tokens", {}), "1 to 2^31-2 tokens"},
      {twice.file(), "is there twice"},
      {not_a_number.file(), "tokenizer.ggml.scores[259] is NaN"},
      {without_scores, "no key tokenizer.ggml.scores"},
      {without_bytes, "no token <0x00> and no unknown token"},
      {plain().texts("tokenizer.ggml.scores", {"a"}), "tokenizer.ggml.scores"},
  };
  for (const auto& [file, named] : cases) {
    const std::string line = input_error([&, &gguf = file] { from_gguf(gguf); });
    EXPECT_THAT(line, HasSubstr(named));
    EXPECT_THAT(line, HasSubstr("model.gguf"));
  }
}

TEST(GgufVocabulary, ItsFingerprintFollowsEveryPartOfIt) {
  const auto base = [] {
    return bpe("gpt-2").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"a b"});
  };
  const std::string plain = from_gguf(base())->fingerprint();
  EXPECT_EQ(from_gguf(base().text("general.name", "another"))->fingerprint(), plain) << "no part of it";
  const std::vector<GgufWriter> others = {
      bpe("smollm").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"a b"}),
      base().integers("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, 3, 3}),
      base().number("tokenizer.ggml.bos_token_id", 1),
      base().flag("tokenizer.ggml.add_bos_token", false),
      bpe("gpt-2").texts("tokenizer.ggml.tokens", kBpe).texts("tokenizer.ggml.merges", {"a b", "a b"}),
  };
  for (const GgufWriter& other : others) EXPECT_NE(from_gguf(other)->fingerprint(), plain);
}

}  // namespace
}  // namespace quantmap::testing
