// Plain schemes: a short name (with `+KVFP8` or `+KVINT8`), or items `key=value` between commas, or a short
// name followed by items (`W4A16,include=lm_head`). Nothing is said twice; what is left out is `bf16`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "core/error.hpp"
#include "scheme/quant_words.hpp"
#include "scheme/rules.hpp"
#include "scheme/text.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kItems = "w=, a=, kv= or k= and v=, include=, ignore=";

struct KvSuffix {
  std::string_view text, spec;
};
constexpr KvSuffix kKvSuffixes[] = {{"+KVFP8", "fp8_e4m3:tensor"}, {"+KVINT8", "int8:token"}};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  SchemeRules read() {
    bool first = true;
    for (const std::string_view item : split_outside_regex(text_, ",")) {
      if (item.empty())
        refuse(text_.empty() ? "it is empty" : "nothing between two commas, or before or after one");
      const std::size_t equals = item.find('=');
      if (equals != std::string_view::npos) {
        read_item(lower_case(item.substr(0, equals)), item.substr(equals + 1));
      } else if (first) {
        read_short_name(item);
      } else {
        refuse(fmt::format("{} is not key=value (items: {})", quoted(item), kItems));
      }
      first = false;
    }
    return finish();
  }

 private:
  [[noreturn]] void refuse(std::string_view detail) const {
    fail_usage(fmt::format("scheme {}", quoted(text_)), detail);
  }

  // Runs a parser of a part; its error line comes after the scheme that it is in.
  template <typename Parse>
  auto part(const Parse& parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      refuse(error.what());
    }
  }

  void read_short_name(std::string_view name) {
    std::string_view kv;
    for (const KvSuffix& suffix : kKvSuffixes) {
      if (name.size() <= suffix.text.size()) continue;
      const std::string_view head = name.substr(0, name.size() - suffix.text.size());
      if (!same_ignoring_case(name.substr(head.size()), suffix.text)) continue;
      name = head;
      kv = suffix.spec;
      break;
    }
    std::vector<std::string_view> known;
    for (const ShortName& candidate : short_names()) {
      known.push_back(candidate.name);
      if (!same_ignoring_case(name, candidate.name)) continue;
      // The reference's `bf16` is what is left out anyway, so items may follow it.
      if (candidate.name != "BF16")
        for (const std::string_view item : split_outside_regex(candidate.expansion, ",")) {
          const std::size_t equals = item.find('=');
          read_item(item.substr(0, equals), item.substr(equals + 1));
        }
      if (!kv.empty()) read_item("kv", kv);
      return;
    }
    if (is_format_not_built(lower_case(name))) refuse(fmt::format("{} is not built yet", quoted(name)));
    refuse(fmt::format("unknown short name (known: {}, each also with +KVFP8 or +KVINT8; or items: {})",
                       fmt::join(known, ", "), kItems));
  }

  void read_item(std::string_view key, std::string_view value) {
    if (key == "w") return read_spec(weight_, key, value, Role::weight);
    if (key == "a") return read_spec(activation_, key, value, Role::activation);
    if (key == "kv" || key == "k" || key == "v") {
      if (key != "v") read_spec(key_, key, value, Role::kv);
      if (key != "k") read_spec(value_, key, value, Role::kv);
      return;
    }
    if (key == "include" || key == "ignore") {
      (key == "include" ? rules_.include : rules_.ignore).push_back(part([&] {
        return ModulePattern(value);
      }));
      return;
    }
    if (key == "smooth" || key == "rotate") refuse(fmt::format("\"{}=\" is not built yet", key));
    refuse(fmt::format("unknown item {} (items: {})", quoted(fmt::format("{}=", key)), kItems));
  }

  void read_spec(std::optional<QuantSpec>& spec, std::string_view key, std::string_view value, Role role) {
    if (spec) refuse(fmt::format("{}= says again what was said before it", key));
    spec = part([&] { return parse_quant_spec(value, role); });
  }

  SchemeRules finish() {
    part([&] {
      normalize_modules(rules_.include, rules_.ignore);
      return 0;
    });
    LinearChoice linear = unquantized_linear();
    KvChoice cache = unquantized_cache();
    if (weight_) linear.weight = *weight_;
    if (activation_) linear.activation = *activation_;
    if (key_) cache.key = *key_;
    if (value_) cache.value = *value_;
    rules_.linears.push_back({ModulePattern("*"), linear});
    rules_.caches.push_back({{}, cache});
    return std::move(rules_);
  }

  const std::string_view text_;
  std::optional<QuantSpec> weight_, activation_, key_, value_;
  SchemeRules rules_;
};

}  // namespace

SchemeRules parse_plain_rules(std::string_view text) { return Reader(text).read(); }

}  // namespace quantmap
