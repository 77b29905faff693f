// The facts are those of llama-vocab.cpp of llama.cpp (names, patterns, flags). Its matcher leaves what no
// pattern matches as a piece of its own, so GPT-2's pattern needs no `|\s+` at its end there; with it the
// pieces are the same.
#include "tokenizer/gguf_pre.hpp"

#include <algorithm>

#include "tokenizer/pattern.hpp"

namespace quantmap {
namespace {

#define QUANTMAP_CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define QUANTMAP_REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr std::string_view kLlama3 =
    QUANTMAP_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" QUANTMAP_REST;
constexpr std::string_view kQwen2 = QUANTMAP_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" QUANTMAP_REST;
constexpr std::string_view kQwen35 =
    QUANTMAP_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
                          R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Upper and lower case of tekken (Mistral Nemo) are told apart for ASCII letters only, as llama.cpp does.
constexpr std::string_view kTekken = R"([^\r\n\p{L}\p{N}]?(?:(?![a-z])\p{L})*(?:(?![A-Z])\p{L})+|)"
                                     R"([^\r\n\p{L}\p{N}]?(?:(?![a-z])\p{L})+(?:(?![A-Z])\p{L})*|)"
                                     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<GgufPre>& table() {
  static const std::vector<GgufPre> rows = {
      {{"", "default"},
       {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"},
       false,
       false},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "exaone4", "modern-bert"},
       {kGpt2Pattern},
       false,
       false},
      // Decimal digits alone, as transformers reads this vocabulary out of a GGUF file
      // (docs/decisions/tokenizers.md): llama.cpp's rule, and the model's own tokenizer.json, also cut
      // numerals such as one half.
      {{"smollm"}, {R"(\p{Nd})", kGpt2Pattern}, false, false},
      {{"starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       {R"(\p{N})", kGpt2Pattern},
       false,
       false},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "lfm2"}, {kLlama3}, true, true},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {kLlama3}, false, false},
      {{"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"}, {kQwen2}, false, false},
      {{"qwen35"}, {kQwen35}, false, false},
      {{"tekken"}, {kTekken}, true, true},
  };
  return rows;
}

}  // namespace

const GgufPre* find_gguf_pre(std::string_view name) {
  for (const GgufPre& row : table())
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
  return nullptr;
}

}  // namespace quantmap
