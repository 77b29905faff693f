// tokenizer.json of HF tokenizers: added tokens, normalizer, pre-tokenizer, BPE. `truncation`, `padding` and
// `decoder` have no part in the ids of a whole text; `post_processor` only says whether BOS comes first.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "tokenizer/added_tokens.hpp"
#include "tokenizer/bpe.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/hf_special_tokens.hpp"
#include "tokenizer/json_access.hpp"
#include "tokenizer/loaders.hpp"
#include "tokenizer/normalizer.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/unicode.hpp"
#include "tokenizer/word_cache.hpp"

namespace quantmap {
namespace {

Vocabulary parse_vocabulary(const JsonPlace& json) {
  if (!json.value().is_object()) json.fail("an object of token: id");
  Vocabulary vocabulary;
  vocabulary.reserve(json.value().size());
  std::unordered_set<std::int32_t> seen;
  for (const auto& [token, id] : json.value().items()) {
    const JsonPlace place(id, fmt::format("{}[{}]", json.place(), quoted(token)), json.file());
    if (!seen.insert(place.as_id()).second)
      place.complain(fmt::format("id {} is another token's too", place.as_id()));
    vocabulary.emplace(token, place.as_id());
  }
  return vocabulary;
}

// Merges are strings `left right`, or pairs where a part may hold a space (B37); ranks are their positions.
std::vector<std::pair<std::string, std::string>> parse_merges(const JsonPlace& json) {
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const nlohmann::json& entry = json.value()[i];
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      merges.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
      continue;
    }
    if (!entry.is_string()) json.at(i).fail("\"left right\" or [\"left\", \"right\"]");
    const std::string text = entry.get<std::string>();
    if (text.starts_with("#version")) continue;  // the first line of a merges.txt
    const std::size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos)
      json.at(i).fail("two parts and one space");
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

Bpe parse_bpe(const JsonPlace& model) {
  const std::string type = model.string_or("type", "BPE");
  if (type != "BPE") model.refuse(fmt::format("model {}", quoted(type)));
  if (model.has("dropout") && !(model.at("dropout").value().is_number() && model.at("dropout").value() == 0))
    model.at("dropout").refuse("dropout (ids would be random)");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.string_or(key, "").empty()) model.at(key).refuse("a mark on parts of words");
  Vocabulary vocabulary = parse_vocabulary(model.at("vocab"));
  BpeOptions options;
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  if (model.has("unk_token")) {
    const auto found = vocabulary.find(model.string("unk_token"));
    if (found == vocabulary.end()) model.at("unk_token").complain("not in the vocabulary");
    options.unknown = found->second;
  }
  return Bpe(std::move(vocabulary), parse_merges(model.at("merges")), true, options, model.file());
}

std::vector<AddedToken> parse_added_tokens(const JsonPlace& root, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (!root.has("added_tokens")) return tokens;
  const JsonPlace list = root.at("added_tokens");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonPlace json = list.at(i);
    AddedToken token;
    token.content = json.string("content");
    token.id = json.at("id").as_id();
    token.special = json.boolean_or("special", false);
    token.single_word = json.boolean_or("single_word", false);
    token.lstrip = json.boolean_or("lstrip", false);
    token.rstrip = json.boolean_or("rstrip", false);
    token.normalized = json.boolean_or("normalized", !token.special);
    const auto known = vocabulary.find(token.content);
    if (known != vocabulary.end() && known->second != token.id)
      json.at("id").fail(fmt::format("{}, as in model.vocab", known->second));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

class HfTokenizer : public Tokenizer {
 public:
  // `root`: what `text`, the file, holds; `directory`: where its companions are.
  HfTokenizer(const JsonPlace& root, const std::filesystem::path& directory, const std::string& text)
      : normalizer_(parse_normalizer(optional(root, "normalizer"))),
        pre_tokenizer_(parse_pre_tokenizer(optional(root, "pre_tokenizer"))),
        bpe_(parse_bpe(root.at("model"))),
        added_(parse_added_tokens(root, bpe_.vocabulary())),
        in_text_(chosen(added_, false, normalizer_)),
        in_normalized_(chosen(added_, true, normalizer_)) {
    for (const auto& [token, id] : bpe_.vocabulary())
      vocab_size_ = std::max<std::int64_t>(vocab_size_, id + 1);
    for (const AddedToken& token : added_) vocab_size_ = std::max<std::int64_t>(vocab_size_, token.id + 1);
    kind_ = pre_tokenizer_.byte_level ? "tokenizer.json (byte-level BPE)" : "tokenizer.json (BPE)";
    resolve_special_tokens(directory, root);
    Fingerprint hash;
    hash.add(text);
    hash.add(fmt::format("\nbos {} eos {} add_bos {}", bos_.value_or(-1), eos_.value_or(-1), add_bos_));
    fingerprint_ = hash.hex();
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    WordCache cache(
        [this](std::string_view piece, std::vector<std::int32_t>& out) { bpe_.encode(piece, out); },
        bpe_.words_stay_apart());
    walk(
        text, [&](std::int32_t id) { ids.push_back(id); },
        [&](const std::string& piece) { cache.encode(piece, ids); });
    return ids;
  }

  std::vector<std::string> pre_tokens(std::string_view text) const override {
    std::vector<std::string> pieces;
    walk(
        text, [](std::int32_t) {},
        [&](const std::string& piece) {
          const auto bytes = pre_tokenizer_.byte_level ? byte_level_decode(piece) : std::nullopt;
          pieces.push_back(bytes ? *bytes : piece);
        });
    return pieces;
  }

 private:
  // A part of the file that may be missing, which means the same as null.
  static JsonPlace optional(const JsonPlace& root, const char* key) {
    static const nlohmann::json null;
    return root.has(key) ? root.at(key) : JsonPlace(null, key, root.file());
  }

  // The tokens that are looked for before, or after normalization; in the latter case as normalized.
  static AddedTokens chosen(std::vector<AddedToken> tokens, bool normalized, const Normalizer& normalizer) {
    std::erase_if(tokens, [&](const AddedToken& token) { return token.normalized != normalized; });
    if (normalized)
      for (AddedToken& token : tokens) token.content = normalizer(token.content);
    return AddedTokens(tokens);
  }

  std::optional<std::int32_t> id_of(std::string_view token) const {
    for (const AddedToken& added : added_)
      if (added.content == token) return added.id;
    const auto found = bpe_.vocabulary().find(token);
    return found == bpe_.vocabulary().end() ? std::nullopt : std::optional(found->second);
  }

  void resolve_special_tokens(const std::filesystem::path& directory, const JsonPlace& root) {
    const SpecialTokens tokens =
        read_special_tokens(directory, [this](std::string_view token) { return id_of(token); });
    bos_ = tokens.bos;
    eos_ = tokens.eos;
    const JsonPlace post_processor = optional(root, "post_processor");
    const auto first = first_of_template(post_processor);
    if (first && bos_ && *first != *bos_)
      post_processor.complain(fmt::format("puts token {} before a text, but BOS is {}", *first, *bos_));
    if (first) bos_ = first;
    if (bos_ && *bos_ >= vocab_size_)
      fail_input("tokenizer", root.file(), "BOS of the post-processor or the model's config",
                 fmt::format("an id below {}", vocab_size_), fmt::format("{}", *bos_));
    // As transformers 5 does: tokenizer_config.json has a say only where tokenizer.json has none.
    add_bos_ = first.has_value();
    if (post_processor.value().is_null() && tokens.add_bos) add_bos_ = *tokens.add_bos && bos_;
  }

  template <typename OnToken, typename OnPiece>
  void walk(std::string_view text, OnToken on_token, OnPiece on_piece) const {
    require_utf8(text);
    for (const Segment& segment : in_text_.find(text)) {
      if (segment.id >= 0) {
        on_token(segment.id);
        continue;
      }
      const std::string normalized =
          normalizer_(std::string(text.substr(segment.begin, segment.end - segment.begin)));
      for (const Segment& part : in_normalized_.find(normalized)) {
        if (part.id >= 0) {
          on_token(part.id);
          continue;
        }
        std::vector<TextPiece> pieces;
        pieces.push_back(
            {normalized.substr(part.begin, part.end - part.begin), segment.begin == 0 && part.begin == 0});
        for (const TextPiece& piece : pre_tokenizer_.run(std::move(pieces))) on_piece(piece.text);
      }
    }
  }

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Bpe bpe_;
  std::vector<AddedToken> added_;
  AddedTokens in_text_, in_normalized_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_hf_tokenizer(const std::filesystem::path& directory) {
  const std::string file = (directory / "tokenizer.json").string();
  const std::string text = read_text_file(file);
  const nlohmann::json json = parse_json(text, "tokenizer", file);
  return std::make_unique<HfTokenizer>(JsonPlace(json, "", file), directory, text);
}

}  // namespace quantmap
