// Against ids of llama.cpp and independent implementations on ../shared/data (its README says whose).
#include <cstring>
#include <map>
#include <sstream>

#include "checkpoint/gguf.hpp"
#include "tokenizer/support.hpp"

namespace quantmap::testing {
namespace {

using nlohmann::json;

std::filesystem::path data(const std::string& name) { return shared_dir() / "data" / name; }

std::vector<std::string> cut_at(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = text.find(separator, begin)) != text.npos; begin = at + separator.size())
    parts.push_back(text.substr(begin, at - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

Ids numbers_of(const std::string& line) {
  std::istringstream in(line);
  Ids ids;
  for (std::int32_t id = 0; in >> id;) ids.push_back(id);
  return ids;
}

// llama.cpp's own tokenizer test: texts and the ids of each.
void expect_llama_cpp_ids(const std::string& vocabulary) {
  const auto tokenizer = load_tokenizer(data("gguf-vocab/" + vocabulary));
  auto texts = cut_at(read_text_file(data("gguf-vocab/" + vocabulary + ".inp")), "\n__ggml_vocab_test__\n");
  texts.pop_back();  // behind the last separator
  const auto lines = cut_at(read_text_file(data("gguf-vocab/" + vocabulary + ".out")), "\n");
  ASSERT_EQ(texts.size(), 46u);
  ASSERT_GE(lines.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer->encode(texts[i]), numbers_of(lines[i]))
        << "text " << i << ": " << quoted(texts[i], 200);
}

TEST(TokenizerSharedData, Gpt2VocabularyInGgufGivesLlamaCppsIds) {
  QUANTMAP_NEEDS(data("gguf-vocab"));
  expect_llama_cpp_ids("ggml-vocab-gpt-2.gguf");
}

TEST(TokenizerSharedData, LlamaVocabularyInGgufGivesLlamaCppsIds) {
  QUANTMAP_NEEDS(data("gguf-vocab"));
  expect_llama_cpp_ids("ggml-vocab-phi-3.gguf");
}

std::string wikitext() { return read_text_file(data("wikitext-2/wiki.test.raw")); }

TEST(TokenizerSharedData, WikiTextHasGpt2sTokenCountFromGgufAndFromVocabAndMerges) {
  QUANTMAP_NEEDS(data("gguf-vocab"));
  QUANTMAP_NEEDS(data("wikitext-2/wiki.test.raw"));
  QUANTMAP_NEEDS(data("tokenizers/gpt2"));
  const std::string text = wikitext();
  const auto gguf = load_tokenizer(data("gguf-vocab/ggml-vocab-gpt-2.gguf"));
  const Ids ids = gguf->encode(text);
  EXPECT_EQ(ids.size(), 286221u);
  EXPECT_FALSE(gguf->add_bos());
  EXPECT_EQ(gguf->bos(), 50256);
  // The same vocabulary as tokenizer.json would hold it, merges as strings.
  json merges = json::array();
  for (const std::string& line : cut_at(read_text_file(data("tokenizers/gpt2/merges.txt")), "\n"))
    if (!line.empty()) merges.push_back(line);
  json file = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
               {"model", {{"type", "BPE"}, {"merges", merges}}}};
  file["model"]["vocab"] = json::parse(read_text_file(data("tokenizers/gpt2/vocab.json")));
  EXPECT_EQ(sha256_of_ids(from_json(file)->encode(text)), sha256_of_ids(ids));
}

TEST(TokenizerSharedData, WikiTextHasItsTokenCountWithThePhi3Vocabulary) {
  QUANTMAP_NEEDS(data("gguf-vocab"));
  QUANTMAP_NEEDS(data("wikitext-2/wiki.test.raw"));
  const auto tokenizer = load_tokenizer(data("gguf-vocab/ggml-vocab-phi-3.gguf"));
  // The pieces of Llama's 32,000 and 64 more that the text does not spell.
  EXPECT_EQ(tokenizer->encode(wikitext()).size(), 335687u);
  EXPECT_TRUE(tokenizer->add_bos());
  EXPECT_EQ(tokenizer->bos(), 1);
}

std::filesystem::path smollm2() {
  if (const char* set = std::getenv("QUANTMAP_SMOLLM2")) return set;
  const auto cache = source_dir() / "datasets/cache";
  if (std::filesystem::is_directory(cache))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache))
      if (entry.path().filename().string().starts_with("SmolLM2-135M") && entry.path().extension() == ".gguf")
        return entry.path();
  return cache / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

// Ids that llama.cpp itself gives (tests/golden/tokenizer/make_gguf_golden.py).
// `spares`: a text, or the whole one, that holds this is left out.
void expect_golden_ids(const Tokenizer& tokenizer, const std::string& model, const std::string& spares = "") {
  const json file = golden_json("gguf.json");
  const json& expected = file.at("models").at(model);
  const auto texts = file.at("texts").get<std::vector<std::string>>();
  std::size_t compared = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!spares.empty() && texts[i].find(spares) != std::string::npos) continue;
    ++compared;
    EXPECT_EQ(tokenizer.encode(texts[i]), expected.at("ids")[i].get<Ids>())
        << i << ": " << quoted(texts[i], 200);
  }
  EXPECT_GE(compared, texts.size() / 2);
  if (!spares.empty()) return;
  QUANTMAP_NEEDS(data("wikitext-2/wiki.test.raw"));
  const Ids ids = tokenizer.encode(wikitext());
  EXPECT_EQ(ids.size(), expected.at("whole_text").at("count").get<std::size_t>());
  EXPECT_EQ(sha256_of_ids(ids), expected.at("whole_text").at("sha256").get<std::string>());
}

TEST(TokenizerSharedData, SmolLM2InGgufGivesLlamaCppsIds) {
  QUANTMAP_NEEDS(smollm2());
  const auto tokenizer = load_tokenizer(smollm2());
  expect_golden_ids(*tokenizer, "smollm2", "\u00bd");
  EXPECT_FALSE(tokenizer->add_bos());
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->kind(), "GGUF (byte-level BPE, smollm)");
  // B39: Digits, then ByteLevel.
  EXPECT_THAT(tokenizer->pre_tokens(" 12345"), ::testing::ElementsAre(" ", "1", "2", "3", "4", "5"));
}

TEST(TokenizerSharedData, Stories260KInGgufGivesLlamaCppsIds) {
  QUANTMAP_NEEDS(data("stories260K/stories260K.gguf"));
  const auto tokenizer = load_tokenizer(data("stories260K/stories260K.gguf"));
  expect_golden_ids(*tokenizer, "stories260k");
  EXPECT_TRUE(tokenizer->add_bos());
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
}

// The independent results on SmolLM2 name their ids by count, first ids and hash
// (docs/decisions/tokenizers.md: they cut decimal digits only).
TEST(TokenizerSharedData, SmolLM2GivesTheIdsOfTheReferenceResults) {
  QUANTMAP_NEEDS(smollm2());
  QUANTMAP_NEEDS(data("wikitext-2/wiki.test.raw"));
  const auto expected_file = data("reference-results/smollm2-schemes.json");
  QUANTMAP_NEEDS(expected_file);
  const json expected = json::parse(read_text_file(expected_file));
  const Ids ids = load_tokenizer(smollm2())->encode(wikitext());
  EXPECT_EQ(ids.size(), expected.at("text_tokens").get<std::size_t>());
  EXPECT_EQ(sha256_of_ids(ids), expected.at("ids_sha256").get<std::string>());
  const auto first = expected.at("first_ids").get<Ids>();
  EXPECT_TRUE(std::equal(first.begin(), first.end(), ids.begin()));
}

// llama2.c's rule, written down as it says: while any neighbours join to a token, join the best, leftmost
// first.
Ids merged_by_definition(const json& vocabulary, const std::string& text) {
  std::map<std::string, std::pair<std::int32_t, float>> tokens;
  for (std::size_t i = 259; i < vocabulary.size(); ++i)  // behind <unk>, <s>, </s> and the bytes
    tokens[vocabulary[i].at("text")] = {static_cast<std::int32_t>(i), vocabulary[i].at("score")};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    parts.push_back(text.substr(i, end - i));
    i = end;
  }
  for (;;) {
    std::size_t best = parts.size();
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = tokens.find(parts[i] + parts[i + 1]);
      if (found == tokens.end()) continue;
      if (best == parts.size() || found->second.second > tokens[parts[best] + parts[best + 1]].second)
        best = i;
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    const auto found = tokens.find(part);
    if (found != tokens.end())
      ids.push_back(found->second.first);
    else
      for (const char byte : part) ids.push_back(3 + static_cast<unsigned char>(byte));
  }
  return ids;
}

// tok512.bin: int32 longest, then {float score, int32 length, bytes} for each token.
json read_tok512(const std::filesystem::path& path) {
  const std::string bytes = read_text_file(path);
  json vocabulary = json::array();
  for (std::size_t at = 4; at + 8 <= bytes.size();) {
    float score = 0;
    std::int32_t length = 0;
    std::memcpy(&score, &bytes[at], 4);
    std::memcpy(&length, &bytes[at + 4], 4);
    std::string text = bytes.substr(at + 8, static_cast<std::size_t>(length));
    std::string marked;  // tok512.bin has spaces where GGUF has U+2581
    for (const char c : text) marked += c == ' ' ? std::string("\u2581") : std::string(1, c);
    vocabulary.push_back({{"text", marked}, {"score", score}});
    at += 8 + static_cast<std::size_t>(length);
  }
  return vocabulary;
}

TEST(TokenizerSharedData, Stories260KMergesByTheScoresOfLlama2C) {
  QUANTMAP_NEEDS(data("stories260K/stories260K.gguf"));
  QUANTMAP_NEEDS(data("stories260K/tok512.bin"));
  QUANTMAP_NEEDS(data("stories260K/expected_greedy.txt"));
  const auto tokenizer = load_tokenizer(data("stories260K/stories260K.gguf"));
  const json vocabulary = read_tok512(data("stories260K/tok512.bin"));
  ASSERT_EQ(vocabulary.size(), 512u);
  for (std::string text : {read_text_file(data("stories260K/expected_greedy.txt")), std::string("a"),
                           std::string("Zo\u00eb's \u4f60\u597d\t\n  <s> </s> <0x0A>")}) {
    std::string marked = "\u2581";  // add_space_prefix
    for (const char c : text) marked += c == ' ' ? std::string("\u2581") : std::string(1, c);
    EXPECT_EQ(tokenizer->encode(text), merged_by_definition(vocabulary, marked)) << quoted(text);
  }
}

}  // namespace
}  // namespace quantmap::testing
