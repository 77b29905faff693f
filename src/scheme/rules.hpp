// What a scheme comes to once parsed: ordered rules over modules and layers, first match wins. A plain scheme
// is one rule over everything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scheme/pattern.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

struct LinearRule {
  ModulePattern modules;
  LinearChoice choice;
};

struct KvRule {
  std::vector<std::pair<std::int32_t, std::int32_t>> layers;  // first to last, both in; empty: every layer
  KvChoice choice;
};

struct SchemeRules {
  std::vector<LinearRule> linears;
  std::vector<KvRule> caches;
  std::vector<ModulePattern> include, ignore;  // sorted by text, each once
  bool recipe = false;

  bool has_rule_for_all_modules() const;
  bool has_rule_for_all_layers() const;
};

// `bf16`: nothing is rounded.
LinearChoice unquantized_linear();
KvChoice unquantized_cache();

// One spelling where keys and values have the same, else `k=…,v=…`; the `kv` of a result row.
std::string spelling(const KvChoice& choice);

// A short name or `w=…,a=…,…`; throws Error (usage).
SchemeRules parse_plain_rules(std::string_view text);
// A recipe file, docs/recipes.md; throws Error (input) naming the file and the place in it.
SchemeRules read_recipe(const std::filesystem::path& path);

// Sorts by text, drops repetitions, and refuses (usage) embeddings under `include`.
void normalize_modules(std::vector<ModulePattern>& include, std::vector<ModulePattern>& ignore);
// Refuses (usage) a pattern meant for the embeddings: they are looked up, not multiplied, so no Linear is
// there.
void refuse_embeddings(const ModulePattern& pattern);

// The identity of a recipe: `@` and the first 16 hex digits of the SHA-256 of its canonical JSON.
std::string recipe_digest(const SchemeRules& rules);

}  // namespace quantmap
