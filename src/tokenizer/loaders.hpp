// One function for each kind of file that defines a tokenizer; load_tokenizer chooses.
#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.hpp"

namespace quantmap {

std::unique_ptr<Tokenizer> load_hf_tokenizer(const std::filesystem::path& directory);  // tokenizer.json
std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(
    const std::filesystem::path& directory);  // tokenizer.model
std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& file);

}  // namespace quantmap
