// tokenizer.model: the SentencePiece library itself.
#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "tokenizer/hf_special_tokens.hpp"
#include "tokenizer/loaders.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::filesystem::path& directory) {
    const auto path = directory / "tokenizer.model";
    const std::string model = read_text_file(path);
    // An empty model is no error to the library.
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok() || processor_.GetPieceSize() == 0)
      fail_input("tokenizer", path.string(),
                 fmt::format("not a SentencePiece model ({})", status.ToString()));
    vocab_size_ = processor_.GetPieceSize();
    kind_ = "tokenizer.model (SentencePiece)";
    if (processor_.bos_id() >= 0) bos_ = processor_.bos_id();
    if (processor_.eos_id() >= 0) eos_ = processor_.eos_id();
    // transformers' LlamaTokenizer adds BOS unless it is told not to.
    add_bos_ = bos_.has_value();
    if (std::filesystem::exists(directory / "tokenizer_config.json")) {
      const SpecialTokens tokens = read_special_tokens(directory, [this](std::string_view token) {
        const int id = processor_.PieceToId(token);
        return processor_.IdToPiece(id) == token ? std::optional<std::int32_t>(id) : std::nullopt;
      });
      if (tokens.bos) bos_ = tokens.bos;
      if (tokens.eos) eos_ = tokens.eos;
      if (tokens.add_bos) add_bos_ = *tokens.add_bos && bos_;
    }
    Fingerprint hash;
    hash.add(model);
    hash.add(fmt::format("\nbos {} eos {} add_bos {}", bos_.value_or(-1), eos_.value_or(-1), add_bos_));
    fingerprint_ = hash.hex();
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    require_utf8(text);
    std::vector<int> ids;
    const auto status = processor_.Encode(text, &ids);
    if (!status.ok()) fail("tokenizer", "tokenizer.model", status.ToString());
    return {ids.begin(), ids.end()};
  }

  // The library merges across a whole text; its normalized form is not exported, so the text itself stands
  // for it.
  std::vector<std::string> pre_tokens(std::string_view text) const override {
    require_utf8(text);
    return text.empty() ? std::vector<std::string>() : std::vector<std::string>{std::string(text)};
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(const std::filesystem::path& directory) {
  return std::make_unique<SentencePieceTokenizer>(directory);
}

}  // namespace quantmap
