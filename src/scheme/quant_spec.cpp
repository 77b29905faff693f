// A SPEC, `format[:word…]`, to a QuantSpec: words in any order, each slot at most once, then the defaults of
// the role for what was not said (product.md, "Defaults that matter").
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/error.hpp"
#include "scheme/quant_words.hpp"
#include "scheme/scheme.hpp"
#include "scheme/text.hpp"

namespace quantmap {
namespace {

constexpr std::array<std::string_view, 3> kWordsNotBuilt{"static", "gptq", "awq"};

// Known by name and refused by name, until a row of the registry has them.
constexpr std::array<std::string_view, 9> kFormatsNotBuilt{"q8_1",   "q8_k",  "iq1_s",   "iq1_m", "iq2_xxs",
                                                           "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"};

// Names that several formats go by.
struct Ambiguous {
  std::string_view name, formats;
};
constexpr Ambiguous kAmbiguous[] = {{"fp4", "fp4_e2m1, bnb_fp4"},
                                    {"fp6", "fp6_e2m3, fp6_e3m2"},
                                    {"fp8", "fp8_e4m3, fp8_e5m2"},
                                    {"mxfp6", "mxfp6_e2m3, mxfp6_e3m2"},
                                    {"mxfp8", "mxfp8_e4m3, mxfp8_e5m2"}};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// One SPEC being read: what was said for each slot.
class Reader {
 public:
  Reader(std::string_view text, Role role)
      : role_(role), what_(fmt::format("{} {}", role_name(role), quoted(text))), lower_(lower_case(text)) {}

  QuantSpec read() {
    std::string_view rest = lower_;
    read_format(next_word(rest));
    while (rest.data()) read_word(next_word(rest));
    return resolved();
  }

 private:
  [[noreturn]] void refuse(std::string_view detail) const { fail_usage(what_, detail); }

  // The part before the next colon; `rest` becomes null after the last one.
  static std::string_view next_word(std::string_view& rest) {
    const std::size_t colon = rest.find(':');
    const std::string_view word = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    return word;
  }

  std::string takes() const {
    return fmt::format("{} for {} takes {}", spec_.format->id, role_name(role_),
                       allowed_words(*spec_.format, role_));
  }

  void read_format(std::string_view id) {
    if (id.empty()) refuse("the format is missing");
    spec_.format = find_format(id);
    if (spec_.format) return;
    for (const Ambiguous& several : kAmbiguous)
      if (id == several.name) refuse(fmt::format("{} is ambiguous ({})", quoted(id), several.formats));
    std::vector<std::string_view> known;
    for (const Format& format : formats()) known.push_back(format.id);
    const std::string list = fmt::format("{}", fmt::join(known, ", "));
    if (is_format_not_built(id)) refuse(fmt::format("{} is not built yet (built: {})", quoted(id), list));
    refuse(fmt::format("unknown format {} (known: {})", quoted(id), list));
  }

  void read_word(std::string_view word) {
    if (word.empty()) refuse(fmt::format("an empty word after a colon ({})", takes()));
    if (among(kWordsNotBuilt, word)) refuse(fmt::format("{} is not built yet ({})", quoted(word), takes()));
    const auto slot = slot_of(word);
    if (!slot) refuse(fmt::format("unknown word {} ({})", quoted(word), takes()));
    if (!word_fits(word, *spec_.format, role_))
      refuse(fmt::format("{} means nothing here ({})", quoted(word), takes()));
    std::string_view& said = said_[static_cast<std::size_t>(*slot)];
    if (said == word) refuse(fmt::format("{} is given twice", quoted(word)));
    if (!said.empty()) refuse(fmt::format("{} contradicts {}", quoted(word), quoted(said)));
    said = word;
  }

  std::string_view said(WordSlot slot) const { return said_[static_cast<std::size_t>(slot)]; }

  std::int32_t size(std::string_view digits, std::string_view word) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || value > kMaxGroup)
      refuse(fmt::format("size {} is not a whole number from 1 to {} (written gN or bRxC)", quoted(word),
                         kMaxGroup));
    return static_cast<std::int32_t>(value);
  }

  void resolve_granularity() {
    std::string_view word = said(WordSlot::granularity);
    if (word.empty())
      word = role_ == Role::weight ? "channel" : role_ == Role::activation ? "token" : "tensor";
    if (word == "tensor") {
      spec_.granularity = Granularity::tensor;
    } else if (word == "channel" && role_ == Role::kv) {
      spec_.granularity = Granularity::column;
    } else if (word == "channel" || word == "token") {
      spec_.granularity = Granularity::row;
    } else if (word[0] == 'g') {
      spec_.granularity = Granularity::group;
      spec_.group = size(word.substr(1), word);
    } else {
      spec_.granularity = Granularity::tile;
      const std::size_t by = word.find('x');
      if (by == std::string_view::npos) refuse(fmt::format("{} is not a tile (written bRxC)", quoted(word)));
      spec_.tile_rows = size(word.substr(1, by - 1), word);
      spec_.tile_cols = size(word.substr(by + 1), word);
    }
  }

  void resolve_integer() {
    spec_.asymmetric = !said(WordSlot::zero_point).empty();
    const std::string_view range = said(WordSlot::integer_range);
    if (spec_.asymmetric && range == "narrow")
      refuse("\"narrow\" contradicts \"asym\", which uses every code");
    // A zero point makes use of all 2^b codes, so `asym` is `full` for every role.
    const bool full = range.empty() ? spec_.asymmetric || role_ == Role::weight : range == "full";
    spec_.range = full ? IntegerRange::full : IntegerRange::narrow;
  }

  void resolve_scale() {
    const bool integer = spec_.format->kind == FormatKind::integer;
    const std::string_view type = said(WordSlot::scale_type);
    const bool checkpoint_scale = integer && role_ == Role::weight;  // kept in BF16, as checkpoints keep it
    spec_.scale = type == "sf16"                                          ? ScaleType::f16
                  : type == "sbf16" || (type.empty() && checkpoint_scale) ? ScaleType::bf16
                                                                          : ScaleType::f32;
    if (spec_.granularity == Granularity::tensor && role_ != Role::weight) {
      // What servers do with an FP8 cache whose checkpoint brings no scales; smaller floats have no such
      // habit.
      const bool fp8 = !integer && spec_.format->bits == 8;
      const bool unit = role_ == Role::kv && fp8 && said(WordSlot::scale_source).empty();
      spec_.source = unit ? ScaleSource::unit : ScaleSource::dynamic;
      if (unit && spec_.scale != ScaleType::f32)
        refuse(fmt::format(
            "{} means nothing for the scale 1.0, which tensor stands for here (with dynamic it does)",
            quoted(type)));
    }
    spec_.per_head = role_ == Role::kv && spec_.granularity == Granularity::row && !spec_.asymmetric;
  }

  QuantSpec resolved() {
    const FormatKind kind = spec_.format->kind;
    if (kind == FormatKind::integer || kind == FormatKind::minifloat) {
      resolve_granularity();
      if (kind == FormatKind::integer) resolve_integer();
      resolve_scale();
    }
    const std::string_view rule = said(WordSlot::mx_rule);
    spec_.rule = rule == "ceil"    ? MxScaleRule::ceil
                 : rule == "rceil" ? MxScaleRule::rceil
                 : rule == "even"  ? MxScaleRule::even
                                   : MxScaleRule::floor;
    spec_.no_global = !said(WordSlot::tensor_scale).empty();
    spec_.four_over_six = !said(WordSlot::block_choice).empty();
    spec_.nested = !said(WordSlot::nesting).empty();
    if (said(WordSlot::method) == "mse") {
      spec_.method = Method::mse;
      if (spec_.nested) refuse("\"mse\" contradicts \"nested\", whose scales are rounded together");
      if (spec_.four_over_six) refuse("\"mse\" contradicts \"4over6\", which chooses the scales too");
    }
    return spec_;
  }

  const Role role_;
  const std::string what_, lower_;
  QuantSpec spec_;
  std::array<std::string_view, kWordSlots> said_{};
};

}  // namespace

bool is_format_not_built(std::string_view id) { return !find_format(id) && among(kFormatsNotBuilt, id); }

QuantSpec parse_quant_spec(std::string_view text, Role role) { return Reader(text, role).read(); }

}  // namespace quantmap
