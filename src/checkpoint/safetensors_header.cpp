#include "checkpoint/safetensors_header.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kWhat = "bad safetensors file";

constexpr std::array<SafetensorsType, 22> kTypes{{
    {"BOOL", 8},        {"U8", 8},          {"I8", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
    {"U16", 16},        {"F16", 16},        {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},
    {"I64", 64},        {"U64", 64},        {"F64", 64},  {"C64", 64},
}};

const SafetensorsType* find_type(std::string_view name) {
  for (const SafetensorsType& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

// What the parser is inside of.
enum class Level { top, tensors, entry, numbers, metadata, end };

class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& file, bool keep_unknown) : file_(file), keep_unknown_(keep_unknown) {}

  std::vector<SafetensorsInfo> take() { return std::move(infos_); }

  bool start_object(std::size_t) override {
    switch (level_) {
      case Level::top:
        level_ = Level::tensors;
        return true;
      case Level::tensors:
        level_ = in_metadata_ ? Level::metadata : Level::entry;
        return true;
      default:
        unexpected("an object");
    }
  }
  bool end_object() override {
    if (level_ == Level::entry) finish_entry();
    level_ = level_ == Level::tensors ? Level::end : Level::tensors;
    return true;
  }
  bool start_array(std::size_t) override {
    if (level_ != Level::entry || key_ == "dtype") unexpected("an array");
    level_ = Level::numbers;
    return true;
  }
  bool end_array() override {
    level_ = Level::entry;
    return true;
  }
  bool key(std::string& key) override {
    switch (level_) {
      case Level::tensors:
        if (!names_.insert(key).second)
          fail_input(kWhat, file_, fmt::format("key {} occurs twice in the header", quantmap::quoted(key)));
        in_metadata_ = key == "__metadata__";
        if (!in_metadata_)
          infos_.push_back({.name = key, .dtype = nullptr, .unknown_dtype = {}, .shape = {}, .offsets = {}});
        seen_ = {};
        break;
      case Level::entry:
        start_field(key);
        break;
      default:  // metadata: the reference keeps the last of equal keys, and nothing here depends on them
        break;
    }
    key_ = key;
    return true;
  }
  bool string(std::string& text) override {
    if (level_ == Level::metadata) return true;
    if (level_ != Level::entry || key_ != "dtype") unexpected("a string " + quantmap::quoted(text));
    SafetensorsInfo& info = infos_.back();
    info.dtype = find_type(text);
    if (!info.dtype && keep_unknown_) info.unknown_dtype = text;
    if (!info.dtype && !keep_unknown_)
      fail_input(kWhat, file_, place() + ": unknown dtype", "a type such as F32, F16, BF16",
                 quantmap::quoted(text));
    return true;
  }
  bool number_unsigned(std::uint64_t number) override {
    if (level_ != Level::numbers) unexpected(std::to_string(number));
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail_input(kWhat, file_, place() + ": " + key_, "at most 2^63 - 1", std::to_string(number));
    SafetensorsInfo& info = infos_.back();
    (key_ == "shape" ? info.shape : info.offsets).push_back(static_cast<std::int64_t>(number));
    return true;
  }
  bool number_integer(std::int64_t number) override { unexpected(std::to_string(number)); }
  bool number_float(double, const std::string& text) override {
    unexpected("the number " + quantmap::quoted(text));
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail_input(kWhat, file_, fmt::format("the header is not JSON at byte {} of it", position));
  }

 private:
  enum Field { dtype, shape, offsets, field_count };

  void start_field(const std::string& key) {
    static constexpr std::array<std::string_view, field_count> kFields{"dtype", "shape", "data_offsets"};
    for (int field = 0; field < field_count; ++field) {
      if (kFields[field] != key) continue;
      if (seen_[field])
        fail_input(kWhat, file_, fmt::format("{}: key {} occurs twice", place(), quantmap::quoted(key)));
      seen_[field] = true;
      return;
    }
    fail_input(kWhat, file_, place() + ": unknown key", "dtype, shape, data_offsets", quantmap::quoted(key));
  }

  void finish_entry() {
    const SafetensorsInfo& info = infos_.back();
    for (int field = 0; field < field_count; ++field)
      if (!seen_[field])
        fail_input(kWhat, file_, place(), "dtype, shape and data_offsets", "one of them missing");
    if (info.offsets.size() != 2)
      fail_input(kWhat, file_, place() + ": data_offsets", "two numbers",
                 std::to_string(info.offsets.size()));
  }

  std::string place() const {
    if (in_metadata_) return "__metadata__";
    return infos_.empty() ? "the header" : "tensor " + quantmap::quoted(infos_.back().name);
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (level_) {
      case Level::tensors:
        fail_input(kWhat, file_, place(), "an object", found);
      case Level::entry:
        fail_input(kWhat, file_, fmt::format("{}: {}", place(), key_),
                   key_ == "dtype" ? "a string" : "an array of whole numbers", found);
      case Level::numbers:
        fail_input(kWhat, file_, fmt::format("{}: {}", place(), key_), "whole numbers", found);
      case Level::metadata:
        fail_input(kWhat, file_, fmt::format("__metadata__: {}", quantmap::quoted(key_)), "a string", found);
      default:
        fail_input(kWhat, file_, "the header", "a JSON object", found);
    }
  }

  const std::string& file_;
  bool keep_unknown_;
  Level level_ = Level::top;
  bool in_metadata_ = false;
  std::string key_;
  std::array<bool, field_count> seen_{};
  std::unordered_set<std::string> names_;
  std::vector<SafetensorsInfo> infos_;
};

}  // namespace

std::vector<SafetensorsInfo> parse_safetensors_header(std::string_view json, const std::string& file,
                                                      bool keep_unknown) {
  // Checked here because the parser skips a byte order mark, and takes a NUL for the end of the text.
  if (json.empty() || json.front() != '{')
    fail_input(kWhat, file, "the header", "JSON that starts with {", quantmap::quoted(json.substr(0, 1)));
  if (const std::size_t at = json.find('\0'); at != json.npos)
    fail_input(kWhat, file, fmt::format("the header is not JSON at byte {} of it", at), "text", "a NUL byte");
  HeaderReader reader(file, keep_unknown);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

}  // namespace quantmap
