#include "tokenizer/gguf_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

std::vector<std::string> read_strings(const GgufFile& file, std::string_view key) {
  const std::vector<std::string_view> views = file.strings(key);
  return {views.begin(), views.end()};
}

std::optional<std::int32_t> read_id(const GgufFile& file, std::string_view key, std::size_t vocabulary) {
  const auto id = file.integer(key);
  if (!id || *id < 0 || static_cast<std::uint64_t>(*id) >= vocabulary) return std::nullopt;
  return static_cast<std::int32_t>(*id);
}

std::vector<GgufTokenType> read_types(const GgufFile& file, std::string_view key, std::size_t count) {
  if (!file.has(key)) return std::vector<GgufTokenType>(count, GgufTokenType::normal);
  std::vector<GgufTokenType> types;
  for (const std::int64_t type : file.integers(key))
    types.push_back(type >= 0 && type <= 6 ? static_cast<GgufTokenType>(type) : GgufTokenType::undefined);
  return types;
}

template <typename T>
void require_length(const std::vector<T>& list, std::size_t count, const std::string& file,
                    std::string_view key) {
  if (list.size() != count)
    fail_input("tokenizer", file, std::string(key), fmt::format("{} elements, one a token", count),
               fmt::format("{}", list.size()));
}

// Names that llama.cpp treats as control tokens whatever their type says (they end a generation).
bool named_like_control(std::string_view text) {
  constexpr std::string_view names[] = {
      "</s>",    "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>",
      "<|end|>", "<end_of_turn>", "<eos>",           "<|return|>", "<|call|>",   "<EOT>",
      "_<EOT>",  "[EOT]",         "[EOS]",           "<|flush|>",  "<|calls|>",  "<end_of_utterance>",
  };
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

}  // namespace

GgufVocabulary read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary;
  vocabulary.file = file.name();
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.tokens"})
    if (!file.has(key)) fail_input("tokenizer", vocabulary.file, fmt::format("no key {}", key));
  vocabulary.model = std::string(*file.string("tokenizer.ggml.model"));
  vocabulary.pre = std::string(file.string("tokenizer.ggml.pre").value_or(""));
  vocabulary.tokens = read_strings(file, "tokenizer.ggml.tokens");
  const std::size_t count = vocabulary.tokens.size();
  if (count == 0 || count >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    fail_input("tokenizer", vocabulary.file, "tokenizer.ggml.tokens", "1 to 2^31-2 tokens",
               fmt::format("{}", count));
  vocabulary.types = read_types(file, "tokenizer.ggml.token_type", count);
  require_length(vocabulary.types, count, vocabulary.file, "tokenizer.ggml.token_type");
  if (file.has("tokenizer.ggml.scores")) {
    vocabulary.scores = file.floats("tokenizer.ggml.scores");
    require_length(vocabulary.scores, count, vocabulary.file, "tokenizer.ggml.scores");
    for (std::size_t i = 0; i < count; ++i)
      if (std::isnan(vocabulary.scores[i]))
        fail_input("tokenizer", vocabulary.file, fmt::format("tokenizer.ggml.scores[{}] is NaN", i));
  }
  if (file.has("tokenizer.ggml.merges")) vocabulary.merges = read_strings(file, "tokenizer.ggml.merges");
  vocabulary.bos = read_id(file, "tokenizer.ggml.bos_token_id", count);
  vocabulary.eos = read_id(file, "tokenizer.ggml.eos_token_id", count);
  vocabulary.unknown = read_id(file, "tokenizer.ggml.unknown_token_id", count);
  vocabulary.add_bos = file.boolean("tokenizer.ggml.add_bos_token");
  vocabulary.add_space_prefix = file.boolean("tokenizer.ggml.add_space_prefix");
  return vocabulary;
}

std::string GgufVocabulary::fingerprint() const {
  Fingerprint hash;
  // Each part with its length in front, so that no two vocabularies run together to the same bytes.
  const auto add = [&](std::string_view text) {
    hash.add(fmt::format("{}:", text.size()));
    hash.add(text);
  };
  const auto add_list = [&](const std::vector<std::string>& list) {
    hash.add(fmt::format("[{}]", list.size()));
    for (const std::string& text : list) add(text);
  };
  add(model);
  add(pre);
  add_list(tokens);
  add_list(merges);
  hash.add(scores.data(), scores.size() * sizeof(float));
  hash.add(types.data(), types.size());
  const auto flag = [](std::optional<bool> value) { return value ? static_cast<int>(*value) : -1; };
  hash.add(fmt::format("bos {} eos {} unknown {} add_bos {} add_space_prefix {}", bos.value_or(-1),
                       eos.value_or(-1), unknown.value_or(-1), flag(add_bos), flag(add_space_prefix)));
  return hash.hex();
}

UserDefinedTokens::UserDefinedTokens(const GgufVocabulary& vocabulary) {
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    const auto id = static_cast<std::int32_t>(i);
    if (vocabulary.types[i] != GgufTokenType::user_defined || text.empty() || named_like_control(text))
      continue;
    if (id == vocabulary.bos || id == vocabulary.eos) continue;
    tokens_.push_back({text, id});
  }
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const Token& a, const Token& b) { return a.text.size() > b.text.size(); });
}

std::vector<UserDefinedTokens::Part> UserDefinedTokens::cut(std::string_view text) const {
  std::vector<Part> parts;
  if (!text.empty()) parts.push_back({text});
  for (const Token& token : tokens_) {
    if (text.find(token.text) == text.npos) continue;
    std::vector<Part> finer;
    for (const Part& part : parts) {
      if (part.id >= 0) {
        finer.push_back(part);
        continue;
      }
      std::string_view rest = part.text;
      for (std::size_t at = 0; (at = rest.find(token.text)) != rest.npos;) {
        if (at > 0) finer.push_back({rest.substr(0, at)});
        finer.push_back({rest.substr(at, token.text.size()), token.id});
        rest.remove_prefix(at + token.text.size());
      }
      if (!rest.empty()) finer.push_back({rest});
    }
    parts = std::move(finer);
  }
  return parts;
}

}  // namespace quantmap
