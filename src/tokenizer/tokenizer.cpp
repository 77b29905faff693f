#include "tokenizer/tokenizer.hpp"

#include "core/error.hpp"
#include "tokenizer/loaders.hpp"

namespace quantmap {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model) {
  if (!std::filesystem::is_directory(model)) return load_gguf_tokenizer(model);
  if (std::filesystem::exists(model / "tokenizer.json")) return load_hf_tokenizer(model);
  if (std::filesystem::exists(model / "tokenizer.model")) return load_sentencepiece_tokenizer(model);
  fail_input("tokenizer", model.string(), "no tokenizer", "tokenizer.json or tokenizer.model", "neither");
}

}  // namespace quantmap
