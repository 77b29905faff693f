// The words of a SPEC and where they mean something: one table that the parser, its error lines and the tests
// read. Which words a format takes depends on its kind and on what it quantizes (product.md, Words).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/spec.hpp"

namespace quantmap {

// Two words of one slot contradict each other.
enum class WordSlot : std::uint8_t {
  granularity,
  zero_point,     // asym
  integer_range,  // narrow | full
  mx_rule,        // floor | ceil | rceil | even
  scale_type,     // sf32 | sf16 | sbf16
  scale_source,   // dynamic
  tensor_scale,   // noglobal
  block_choice,   // 4over6
  nesting,        // nested
  method,         // rtn | mse
};
inline constexpr std::size_t kWordSlots = 10;

// Largest group and tile side. A group longer than a row is one group.
inline constexpr std::int64_t kMaxGroup = std::int64_t{1} << 20;

// What `weights`, `activations` or `KV cache` are called in error lines.
std::string_view role_name(Role role);

// A format of product.md or GGUF that is refused as `not built yet`, not as unknown.
bool is_format_not_built(std::string_view id);

// The slot of a word that is in the grammar, whether or not it fits here; `g…` and `b…x…` count by their
// form.
std::optional<WordSlot> slot_of(std::string_view word);

// Whether this word (of a slot that it has) means something for this format in this role.
bool word_fits(std::string_view word, const Format& format, Role role);

// `channel | tensor | gN | bRxC; asym; …`, or `no words`.
std::string allowed_words(const Format& format, Role role);

}  // namespace quantmap
