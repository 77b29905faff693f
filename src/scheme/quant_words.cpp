#include "scheme/quant_words.hpp"

#include <array>

namespace quantmap {
namespace {

constexpr unsigned bit(FormatKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr unsigned bit(Role role) { return 1U << static_cast<unsigned>(role); }

constexpr unsigned kScaled =
    bit(FormatKind::integer) | bit(FormatKind::minifloat);  // a scale per granularity
constexpr unsigned kInteger = bit(FormatKind::integer);
constexpr unsigned kAnyKind =
    kScaled | bit(FormatKind::mx) | bit(FormatKind::nvfp4) | bit(FormatKind::lookup);
constexpr unsigned kWeight = bit(Role::weight), kActivation = bit(Role::activation), kKv = bit(Role::kv);
constexpr unsigned kAnyRole = kWeight | kActivation | kKv;

struct Word {
  std::string_view text;  // gN and bRxC stand for every word of their form
  WordSlot slot;
  unsigned kinds;
  unsigned roles;
};

constexpr std::array kWords{
    Word{"tensor", WordSlot::granularity, kScaled, kAnyRole},
    Word{"channel", WordSlot::granularity, kScaled, kWeight | kKv},
    Word{"token", WordSlot::granularity, kScaled, kActivation | kKv},
    Word{"gN", WordSlot::granularity, kScaled, kAnyRole},
    Word{"bRxC", WordSlot::granularity, kScaled, kWeight},
    Word{"asym", WordSlot::zero_point, kInteger, kAnyRole},
    Word{"narrow", WordSlot::integer_range, kInteger, kAnyRole},
    Word{"full", WordSlot::integer_range, kInteger, kAnyRole},
    Word{"floor", WordSlot::mx_rule, bit(FormatKind::mx), kAnyRole},
    Word{"ceil", WordSlot::mx_rule, bit(FormatKind::mx), kAnyRole},
    Word{"rceil", WordSlot::mx_rule, bit(FormatKind::mx), kAnyRole},
    Word{"even", WordSlot::mx_rule, bit(FormatKind::mx), kAnyRole},
    Word{"sf32", WordSlot::scale_type, kScaled, kAnyRole},
    Word{"sf16", WordSlot::scale_type, kScaled, kAnyRole},
    Word{"sbf16", WordSlot::scale_type, kScaled, kAnyRole},
    // A weight's scale comes from the weight: nothing to choose.
    Word{"dynamic", WordSlot::scale_source, kScaled, kActivation | kKv},
    Word{"noglobal", WordSlot::tensor_scale, bit(FormatKind::nvfp4), kAnyRole},
    Word{"4over6", WordSlot::block_choice, bit(FormatKind::nvfp4), kAnyRole},
    // The offset of the nested scales is a mean over the whole matrix: known for a weight only.
    Word{"nested", WordSlot::nesting, bit(FormatKind::lookup), kWeight},
    // Rounding to nearest is what happens without a method; the word may say so.
    Word{"rtn", WordSlot::method, kAnyKind | bit(FormatKind::ggml), kWeight},
    Word{"mse", WordSlot::method, kAnyKind, kWeight},
};

const Word* find_word(std::string_view text) {
  // By form: `g` or `b` and something that starts with a digit (the numbers are checked by the parser).
  if (text.size() > 1 && text[1] >= '0' && text[1] <= '9') {
    if (text[0] == 'g') text = "gN";
    if (text[0] == 'b') text = "bRxC";
  }
  for (const Word& word : kWords)
    if (word.text == text) return &word;
  return nullptr;
}

bool fits(const Word& word, const Format& format, Role role) {
  // MXINT8's scale is the maximum's binade; no tool has another rule for it (formats.md, section 3).
  if (word.slot == WordSlot::mx_rule && format.element == Element::mx_int8) return word.text == "floor";
  return (word.kinds & bit(format.kind)) != 0 && (word.roles & bit(role)) != 0;
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::weight:
      return "weights";
    case Role::activation:
      return "activations";
    case Role::kv:
      return "KV cache";
  }
  return "";
}

std::optional<WordSlot> slot_of(std::string_view word) {
  const Word* found = find_word(word);
  return found ? std::optional(found->slot) : std::nullopt;
}

bool word_fits(std::string_view word, const Format& format, Role role) {
  const Word* found = find_word(word);
  return found && fits(*found, format, role);
}

std::string allowed_words(const Format& format, Role role) {
  std::string list;
  const Word* last = nullptr;
  for (const Word& word : kWords) {
    if (!fits(word, format, role)) continue;
    if (last) list += last->slot == word.slot ? " | " : "; ";
    list += word.text;
    last = &word;
  }
  return list.empty() ? "no words" : list;
}

}  // namespace quantmap
