// Which tokens begin and end a text for a model in HF layout, and whether the tokenizer itself puts BOS
// first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "tokenizer/json_access.hpp"

namespace quantmap {

struct SpecialTokens {
  std::optional<std::int32_t> bos, eos;
  std::optional<bool> add_bos;  // what tokenizer_config.json asks for, if it does
};

// bos_token and eos_token of tokenizer_config.json (a string, or an object with `content`; null means none);
// where the file or the key is missing, the ids in config.json, then generation_config.json. `id_of` finds a
// token's id. Throws Error (input) for a named token that has none.
SpecialTokens read_special_tokens(const std::filesystem::path& directory,
                                  const std::function<std::optional<std::int32_t>(std::string_view)>& id_of);

// The id that `post_processor` of tokenizer.json puts before a text: TemplateProcessing or a Sequence with
// one; ByteLevel puts none. Throws Error (input) naming another type, or a template that puts several.
std::optional<std::int32_t> first_of_template(const JsonPlace& post_processor);

}  // namespace quantmap
