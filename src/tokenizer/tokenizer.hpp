// Text to token ids, equal to the reference implementation's ids (HF tokenizers, SentencePiece, llama.cpp for
// GGUF vocabularies). A text is tokenized whole; text that spells a special token is taken literally
// (product.md; faults S25), other added tokens are matched as their definition says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids of the text, no BOS or EOS added. Throws Error (input) for text that is not UTF-8, with the byte
  // offset.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // The pieces that merging never crosses, as substrings of the normalized text in byte form; for tests.
  virtual std::vector<std::string> pre_tokens(std::string_view text) const = 0;

  std::int64_t vocab_size() const { return vocab_size_; }
  std::optional<std::int32_t> bos() const { return bos_; }
  std::optional<std::int32_t> eos() const { return eos_; }
  bool add_bos() const { return add_bos_; }          // the tokenizer's own rule: one BOS before a text (B41)
  const std::string& kind() const { return kind_; }  // for messages: `tokenizer.json (byte-level BPE)`
  const std::string& fingerprint() const { return fingerprint_; }  // SHA-256 of what defines it

 protected:
  std::int64_t vocab_size_ = 0;
  std::optional<std::int32_t> bos_, eos_;
  bool add_bos_ = false;
  std::string kind_, fingerprint_;
};

// The tokenizer that belongs to a model: in a directory tokenizer.json, else tokenizer.model; in a .gguf file
// its vocabulary. Throws Error (input) naming what is missing or which piece is not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model);

}  // namespace quantmap
