// The three choices: which formats a scheme gives each Linear's weights and inputs and each layer's keys and
// values. The grammar is product.md's (Words): short names, `w=…,a=…,kv=…|k=…,v=…`, `include=`,
// `ignore=/RE/`, and recipes `@FILE.json` (docs/recipes.md). Everything that means nothing, or is not built
// yet, is refused by name (usage).
//
// Names and SPECs may be written in either case. A short name may be followed by items
// (`W4A16,include=lm_head`). `include=` and `ignore=` may be repeated; each takes a module path (letter for
// letter), `*`, or /RE/: a PCRE2 regular expression that matches anywhere in the path unless it is anchored,
// a slash inside written \/. What is ignored stays as it is, included or not.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/spec.hpp"

namespace quantmap {

struct LinearChoice {
  QuantSpec weight;
  QuantSpec activation;
  bool operator==(const LinearChoice&) const = default;
};
struct KvChoice {
  QuantSpec key;
  QuantSpec value;
  bool operator==(const KvChoice&) const = default;
};

struct SchemeRules;  // the parsed rules; scheme.cpp

class Scheme {
 public:
  // Parses one scheme (a short name, a spec, or @FILE.json). Throws Error: usage for the grammar, input for a
  // recipe file that cannot be used.
  static Scheme parse(std::string_view text);

  const std::string& given() const { return given_; }        // as the user wrote it
  const std::string& spelling() const { return spelling_; }  // full spelling: the identity
  // For tables: the plain choice's spellings, or `mixed`.
  std::string weights() const;
  std::string activations() const;
  std::string kv() const;  // `k=…,v=…` where apart

  // What this scheme does to a Linear, named by its HF module path (`model.layers.3.mlp.down_proj`,
  // `lm_head`). Modules outside the decoder layers (and routers in them) are left alone unless `include=`
  // matches them or a recipe's rule gives their very name.
  LinearChoice linear(std::string_view module) const;
  KvChoice cache(int layer) const;

  // Patterns of rules, `include=` and `ignore=` (with that word before them) that none of these modules falls
  // under: a note for the user, who may have mistyped them.
  std::vector<std::string> unused_patterns(const std::vector<std::string>& modules) const;

  // True for `BF16`, however spelled: the reference. A recipe never is: its row shows what its rules come to.
  bool is_reference() const;
  bool operator==(const Scheme& other) const { return spelling_ == other.spelling_; }

 private:
  std::string given_, spelling_;
  std::shared_ptr<const SchemeRules> rules_;
};

// A SPEC for one role: `int4:g128:asym`. Throws Error (usage) naming the word that does not fit.
QuantSpec parse_quant_spec(std::string_view text, Role role);

struct ShortName {
  std::string_view name, expansion;
};
std::span<const ShortName> short_names();

// Splits list arguments at white space (not inside /…/), parses each, drops repetitions of a full spelling;
// the order given is kept. parse_schemes also drops every spelling of the reference.
std::vector<Scheme> parse_every_scheme(const std::vector<std::string>& arguments);
std::vector<Scheme> parse_schemes(const std::vector<std::string>& arguments);

}  // namespace quantmap
