// The vocabulary of a GGUF file, as llama.cpp reads it (llama-vocab.cpp) with special-token text literal.
#include <fmt/format.h>

#include "core/error.hpp"
#include "tokenizer/bpe.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/gguf_pre.hpp"
#include "tokenizer/gguf_spm.hpp"
#include "tokenizer/gguf_vocabulary.hpp"
#include "tokenizer/loaders.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/unicode.hpp"
#include "tokenizer/word_cache.hpp"

namespace quantmap {
namespace {

// Cuts out user-defined tokens; what is left goes to the kind of tokenizer.
class GgufTokenizer : public Tokenizer {
 protected:
  GgufTokenizer(const GgufVocabulary& vocabulary, std::string kind, bool add_bos)
      : user_defined_(vocabulary) {
    vocab_size_ = static_cast<std::int64_t>(vocabulary.tokens.size());
    bos_ = vocabulary.bos;
    eos_ = vocabulary.eos;
    add_bos_ = vocabulary.add_bos.value_or(add_bos);
    kind_ = std::move(kind);
    fingerprint_ = vocabulary.fingerprint();
  }
  // After the kind's default ids are known.
  void require_bos(const GgufVocabulary& vocabulary) const {
    if (add_bos_ && !bos_)
      fail_input("tokenizer", vocabulary.file,
                 "BOS is to be added but tokenizer.ggml.bos_token_id names no token");
  }

  UserDefinedTokens user_defined_;
};

// ---- tokenizer.ggml.model = gpt2

const GgufPre& known_pre(const GgufVocabulary& vocabulary) {
  const GgufPre* pre = find_gguf_pre(vocabulary.pre);
  if (!pre)
    fail_input("tokenizer", vocabulary.file,
               fmt::format("tokenizer.ggml.pre {} is not supported", quoted(vocabulary.pre)));
  return *pre;
}

PreTokenizer compile(const GgufPre& pre, const std::string& file) {
  std::vector<TextPattern> patterns;
  for (const std::string_view pattern : pre.patterns) patterns.push_back(TextPattern::regex(pattern, file));
  return byte_level_chain(patterns);
}

Bpe make_bpe(const GgufVocabulary& vocabulary, bool ignore_merges) {
  if (vocabulary.merges.empty()) fail_input("tokenizer", vocabulary.file, "no tokenizer.ggml.merges");
  Vocabulary ids;
  ids.reserve(vocabulary.tokens.size());
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i)
    if (!ids.emplace(vocabulary.tokens[i], static_cast<std::int32_t>(i)).second)
      fail_input("tokenizer", vocabulary.file,
                 fmt::format("token {} {} is there twice", i, quoted(vocabulary.tokens[i])));
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const std::string& text = vocabulary.merges[i];
    const std::size_t space = text.find(' ', 1);
    if (space == text.npos)
      fail_input("tokenizer", vocabulary.file, fmt::format("tokenizer.ggml.merges[{}]", i), "left right",
                 quoted(text));
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  BpeOptions options;
  options.ignore_merges = ignore_merges;
  return Bpe(std::move(ids), merges, false, options, vocabulary.file);
}

class GgufBpeTokenizer : public GgufTokenizer {
 public:
  explicit GgufBpeTokenizer(const GgufVocabulary& vocabulary)
      : GgufTokenizer(
            vocabulary,
            fmt::format("GGUF (byte-level BPE, {})", vocabulary.pre.empty() ? "default" : vocabulary.pre),
            known_pre(vocabulary).add_bos),
        pre_tokenizer_(compile(known_pre(vocabulary), vocabulary.file)),
        bpe_(make_bpe(vocabulary, known_pre(vocabulary).ignore_merges)) {
    require_bos(vocabulary);
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    require_utf8(text);
    std::vector<std::int32_t> ids;
    WordCache cache(
        [this](std::string_view piece, std::vector<std::int32_t>& out) { bpe_.encode(piece, out); }, false);
    for (const auto& part : user_defined_.cut(text)) {
      if (part.id >= 0)
        ids.push_back(part.id);
      else
        for (const TextPiece& piece : pieces(part.text)) cache.encode(piece.text, ids);
    }
    return ids;
  }

  std::vector<std::string> pre_tokens(std::string_view text) const override {
    require_utf8(text);
    std::vector<std::string> out;
    for (const auto& part : user_defined_.cut(text))
      if (part.id < 0)
        for (const TextPiece& piece : pieces(part.text)) out.push_back(byte_level_decode(piece.text).value());
    return out;
  }

 private:
  std::vector<TextPiece> pieces(std::string_view text) const {
    std::vector<TextPiece> whole;
    whole.push_back({std::string(text), true});
    return pre_tokenizer_.run(std::move(whole));
  }

  PreTokenizer pre_tokenizer_;
  Bpe bpe_;
};

// ---- tokenizer.ggml.model = llama

class GgufSpmTokenizer : public GgufTokenizer {
 public:
  explicit GgufSpmTokenizer(const GgufVocabulary& vocabulary)
      : GgufTokenizer(vocabulary, "GGUF (SentencePiece-style BPE)", true),
        merger_(vocabulary),
        space_prefix_(vocabulary.add_space_prefix.value_or(true)) {
    // llama.cpp's ids where the file names none.
    if (!bos_ && vocab_size_ > 1) bos_ = 1;
    if (!eos_ && vocab_size_ > 2) eos_ = 2;
    require_bos(vocabulary);
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    WordCache cache(
        [this](std::string_view word, std::vector<std::int32_t>& out) { merger_.encode(word, out); },
        merger_.words_stay_apart());
    walk(
        text, [&](std::int32_t id) { ids.push_back(id); },
        [&](const std::string& piece) { cache.encode(piece, ids); });
    return ids;
  }

  std::vector<std::string> pre_tokens(std::string_view text) const override {
    std::vector<std::string> pieces;
    walk(
        text, [](std::int32_t) {}, [&](const std::string& piece) { pieces.push_back(piece); });
    return pieces;
  }

 private:
  // A text, and what follows a user-defined token, starts with a space more.
  template <typename OnToken, typename OnPiece>
  void walk(std::string_view text, OnToken on_token, OnPiece on_piece) const {
    require_utf8(text);
    bool first = true;
    for (const auto& part : user_defined_.cut(text)) {
      if (part.id >= 0) {
        on_token(part.id);
        first = true;
        continue;
      }
      std::string piece = first && space_prefix_ ? "\u2581" : "";
      for (const char c : part.text) {
        if (c == ' ')
          piece += "\u2581";
        else
          piece += c;
      }
      on_piece(piece);
      first = false;
    }
  }

  SpmMerger merger_;
  bool space_prefix_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path) {
  const GgufVocabulary vocabulary = read_gguf_vocabulary(GgufFile::open(path));
  if (vocabulary.model == "gpt2") return std::make_unique<GgufBpeTokenizer>(vocabulary);
  if (vocabulary.model == "llama") return std::make_unique<GgufSpmTokenizer>(vocabulary);
  fail_input("tokenizer", vocabulary.file,
             fmt::format("tokenizer.ggml.model {} is not supported", quoted(vocabulary.model)),
             "gpt2 or llama", quoted(vocabulary.model));
}

}  // namespace quantmap
