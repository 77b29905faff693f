#include "tokenizer/hf_special_tokens.hpp"

#include <fmt/format.h>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

// A token's id from `key` of tokenizer_config.json, which is there.
std::optional<std::int32_t> named_token(
    const JsonPlace& config, const char* key,
    const std::function<std::optional<std::int32_t>(std::string_view)>& id_of) {
  if (!config.has(key)) return std::nullopt;
  const JsonPlace token = config.at(key);
  const std::string content = token.value().is_object() ? token.string("content") : token.as_string();
  const auto id = id_of(content);
  if (!id) token.complain(fmt::format("{} is not in the vocabulary", quoted(content)));
  return id;
}

// An id from `key` of config.json: a number, or a list of which the first counts.
std::optional<std::int32_t> numbered_token(const JsonPlace& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  const JsonPlace token = config.at(key);
  if (!token.value().is_array()) return token.as_id();
  if (token.size() == 0) return std::nullopt;
  return token.at(std::size_t{0}).as_id();
}

}  // namespace

SpecialTokens read_special_tokens(const std::filesystem::path& directory,
                                  const std::function<std::optional<std::int32_t>(std::string_view)>& id_of) {
  SpecialTokens tokens;
  bool need_bos = true, need_eos = true;
  const auto path = directory / "tokenizer_config.json";
  if (std::filesystem::exists(path)) {
    const std::string file = path.string();
    const nlohmann::json json = parse_json(read_text_file(path), "tokenizer", file);
    const JsonPlace config(json, "", file);
    if (!json.is_object()) config.fail("an object");
    tokens.bos = named_token(config, "bos_token", id_of);
    tokens.eos = named_token(config, "eos_token", id_of);
    if (config.has("add_bos_token")) tokens.add_bos = config.boolean("add_bos_token");
    need_bos = !json.contains("bos_token");
    need_eos = !json.contains("eos_token");
  }
  for (const char* name : {"config.json", "generation_config.json"}) {
    const auto fallback = directory / name;
    if ((!need_bos && !need_eos) || !std::filesystem::exists(fallback)) continue;
    const std::string file = fallback.string();
    const nlohmann::json json = parse_json(read_text_file(fallback), "tokenizer", file);
    const JsonPlace config(json, "", file);
    if (need_bos && !tokens.bos) tokens.bos = numbered_token(config, "bos_token_id");
    if (need_eos && !tokens.eos) tokens.eos = numbered_token(config, "eos_token_id");
  }
  return tokens;
}

std::optional<std::int32_t> first_of_template(const JsonPlace& json) {
  if (json.value().is_null()) return std::nullopt;
  const std::string type = json.string("type");
  if (type == "ByteLevel") return std::nullopt;
  if (type == "Sequence") {
    std::optional<std::int32_t> first;
    const JsonPlace list = json.at("processors");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto one = first_of_template(list.at(i));
      if (one && first) list.at(i).refuse("a second token before the text");
      if (one) first = one;
    }
    return first;
  }
  if (type != "TemplateProcessing") json.refuse(fmt::format("post-processor {}", quoted(type)));
  std::optional<std::int32_t> first;
  const JsonPlace single = json.at("single");
  for (std::size_t i = 0; i < single.size(); ++i) {
    const JsonPlace part = single.at(i);
    if (part.has("Sequence")) return first;
    if (!part.has("SpecialToken")) part.fail("Sequence or SpecialToken");
    const std::string name = part.at("SpecialToken").string("id");
    const JsonPlace ids = json.at("special_tokens").at(name.c_str()).at("ids");
    if (first || ids.size() != 1) part.refuse("more than one token before the text");
    first = ids.at(std::size_t{0}).as_id();
  }
  single.complain("no Sequence in the template");
}

}  // namespace quantmap
