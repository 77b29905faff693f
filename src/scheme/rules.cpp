#include "scheme/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace quantmap {

bool SchemeRules::has_rule_for_all_modules() const {
  return std::any_of(linears.begin(), linears.end(),
                     [](const LinearRule& rule) { return rule.modules.matches_all(); });
}

bool SchemeRules::has_rule_for_all_layers() const {
  return std::any_of(caches.begin(), caches.end(), [](const KvRule& rule) { return rule.layers.empty(); });
}

LinearChoice unquantized_linear() {
  return {parse_quant_spec("bf16", Role::weight), parse_quant_spec("bf16", Role::activation)};
}

KvChoice unquantized_cache() {
  const QuantSpec bf16 = parse_quant_spec("bf16", Role::kv);
  return {bf16, bf16};
}

std::string spelling(const KvChoice& choice) {
  const std::string key = spelling(choice.key, Role::kv), value = spelling(choice.value, Role::kv);
  return key == value ? key : fmt::format("k={},v={}", key, value);
}

void refuse_embeddings(const ModulePattern& pattern) {
  const std::string& text = pattern.text();
  const bool meant =
      text.find("embed") != std::string::npos &&
      (pattern.is_name() || pattern.matches("model.embed_tokens") || pattern.matches("embed_tokens"));
  if (meant && !pattern.matches_all())
    fail_usage(fmt::format("module {}", quoted(text)),
               "embeddings are looked up, not multiplied: only a Linear is quantized");
}

void normalize_modules(std::vector<ModulePattern>& include, std::vector<ModulePattern>& ignore) {
  for (const ModulePattern& pattern : include) refuse_embeddings(pattern);
  for (auto* list : {&include, &ignore}) {
    std::sort(list->begin(), list->end(),
              [](const ModulePattern& a, const ModulePattern& b) { return a.text() < b.text(); });
    list->erase(
        std::unique(list->begin(), list->end(),
                    [](const ModulePattern& a, const ModulePattern& b) { return a.text() == b.text(); }),
        list->end());
  }
}

}  // namespace quantmap
