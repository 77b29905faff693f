// Files changed at random, by a fixed seed: each is read or refused with an Error, and what is read encodes.
#include <chrono>

#include "core/random.hpp"
#include "tokenizer/gguf_file.hpp"
#include "tokenizer/support.hpp"

namespace quantmap::testing {
namespace {

using nlohmann::json;

// As many of these as fit into the time; the same ones on every machine.
constexpr int kMutations = 1500;
constexpr std::chrono::seconds kTime(2);

// Calls `mutated(i)`, which says whether a file could be read, and expects that some could and some could
// not: otherwise the mutations would test nothing.
template <typename Mutated>
void mutate_many(Mutated mutated) {
  const auto start = std::chrono::steady_clock::now();
  int count = 0, read = 0;
  for (; count < kMutations && std::chrono::steady_clock::now() - start < kTime; ++count)
    read += mutated(count);
  EXPECT_GT(read, 0) << "of " << count;
  EXPECT_LT(read, count);
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_.next() % limit); }

  std::string bytes(std::string text) {
    for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size()), length = below(20);
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), length));
          break;
        default:
          text[at] = "{}[]\",:0-e\\"[below(11)];
      }
    }
    return text;
  }

  // One value somewhere in it becomes another.
  json value(json root) {
    json* at = &root;
    while (at->is_structured() && !at->empty() && below(6) != 0) {
      auto next = at->begin();
      std::advance(next, static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(at->size(), 12))));
      at = &*next;
    }
    const json values[] = {
        json(),        true,     -1,   0,     700,           4294967296,     1e300,          "",
        "a",           "\u2581", "(",  "\\d", json::array(), json::object(), {{"type", ""}}, "Sequence",
        {{"type", 7}}, root,     "<s>"};
    *at = values[below(std::size(values))];
    return root;
  }

 private:
  SplitMix64 random_;
};

const std::vector<std::string> kTexts = {"", "Hello, world 123 <s> [TOK]\n\n",
                                         "\u4f60\u597d \u00e9e\u0301\U0001f600", std::string(300, 'a')};

// Whether the folder's tokenizer could be read.
bool read_or_refused(const std::filesystem::path& model) {
  try {
    const auto tokenizer = load_tokenizer(model);
    for (const std::string& text : kTexts)
      for (const std::int32_t id : tokenizer->encode(text)) {
        EXPECT_GE(id, 0);
        EXPECT_LT(id, tokenizer->vocab_size());
      }
    return true;
  } catch (const Error&) {
    return false;
  }
}

json small_file() {
  json file = json::parse(read_text_file(golden("spm_bpe.json")));
  file["added_tokens"].push_back({{"id", 700}, {"content", "[TOK]"}, {"lstrip", true}, {"special", false}});
  file["pre_tokenizer"] = json::parse(R"json({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}|\\s+(?!\\S)"}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true},
      {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}]})json");
  return file;
}

TEST(TokenizerMutation, OfBytesOfTokenizerJsonIsReadOrRefused) {
  Mutator mutate(1);
  const std::string text = small_file().dump();
  const auto folder = folder_with({});
  mutate_many([&](int) {
    write_file(folder / "tokenizer.json", mutate.bytes(text));
    return read_or_refused(folder);
  });
}

TEST(TokenizerMutation, OfValuesOfTokenizerJsonIsReadOrRefused) {
  Mutator mutate(2);
  const json file = small_file();
  const auto folder = folder_with({});
  mutate_many([&](int) {
    write_file(folder / "tokenizer.json", mutate.value(file).dump());
    return read_or_refused(folder);
  });
}

TEST(TokenizerMutation, OfASentencePieceModelIsReadOrRefused) {
  Mutator mutate(4);
  const std::string model = read_text_file(golden("tiny.model"));
  const auto folder = folder_with({});
  mutate_many([&](int) {
    write_file(folder / "tokenizer.model", mutate.bytes(model));
    return read_or_refused(folder);
  });
}

TEST(TokenizerMutation, OfAGgufVocabularyIsReadOrRefused) {
  Mutator mutate(3);
  const auto folder = folder_with({});
  mutate_many([&](int i) {
    GgufWriter file;
    file.text("tokenizer.ggml.model", i % 2 ? "gpt2" : "llama")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab", "\u2581", "[TOK]", "\u00c3"})
        .integers("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 1, 4, 1})
        .floats("tokenizer.ggml.scores", std::vector<float>(9, -1.0f))
        .texts("tokenizer.ggml.merges", {"a b"})
        .number("tokenizer.ggml.unknown_token_id", 0)
        .number("tokenizer.ggml.bos_token_id", 1);
    write_file(folder / "model.gguf", mutate.bytes(file.bytes()));
    return read_or_refused(folder / "model.gguf");
  });
}

}  // namespace
}  // namespace quantmap::testing
