#include "map/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "checkpoint/gguf.hpp"
#include "checkpoint/hf_directory.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

// llama.cpp's llama_ftype (include/llama.h): what llama-quantize was asked for.
struct FileType {
  std::int64_t id;
  std::string_view name;
};
constexpr std::array<FileType, 34> kFileTypes{{
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},       {3, "Q4_1"},    {7, "Q8_0"},     {8, "Q5_0"},
    {9, "Q5_1"},    {10, "Q2_K"},   {11, "Q3_K_S"},    {12, "Q3_K_M"}, {13, "Q3_K_L"},  {14, "Q4_K_S"},
    {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},    {18, "Q6_K"},   {19, "IQ2_XXS"}, {20, "IQ2_XS"},
    {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"},   {24, "IQ1_S"},  {25, "IQ4_NL"},  {26, "IQ3_S"},
    {27, "IQ3_M"},  {28, "IQ2_S"},  {29, "IQ2_M"},     {30, "IQ4_XS"}, {31, "IQ1_M"},   {32, "BF16"},
    {36, "TQ1_0"},  {37, "TQ2_0"},  {38, "MXFP4_MOE"}, {39, "NVFP4"},
}};

// A tensor's module and what it is of it. The longest of these endings counts; any other name ends at its
// last dot.
constexpr std::array<std::string_view, 6> kLongEndings{".weight.nested_quant_map",
                                                       ".weight.nested_absmax",
                                                       ".weight.quant_map",
                                                       ".weight.absmax",
                                                       ".weight.quant_state.bitsandbytes__nf4",
                                                       ".weight.quant_state.bitsandbytes__fp4"};

std::pair<std::string_view, std::string_view> split_name(std::string_view name) {
  for (const std::string_view ending : kLongEndings)
    if (name.ends_with(ending))
      return {name.substr(0, name.size() - ending.size()), name.substr(name.size() - ending.size() + 1)};
  for (const std::string_view ending : {std::string_view("_blocks"), std::string_view("_scales")})
    if (name.ends_with(ending) && name.size() > ending.size())
      return {name.substr(0, name.size() - ending.size()), name.substr(name.size() - ending.size())};
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return {name, "weight"};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// Scales of keys and values have had four names (B55): `k_proj.k_scale` (ModelOpt), `self_attn.k_scale`
// (compressed-tensors), `k_proj.output_scale` (its older form), `self_attn.kv_scale` (older still).
bool is_kv_scale(std::string_view module, std::string_view what) {
  if (what == "k_scale" || what == "v_scale" || what == "kv_scale") return true;
  return what == "output_scale" && (module.ends_with("k_proj") || module.ends_with("v_proj"));
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t values = 1;
  for (const std::int64_t size : shape) values *= size;
  return values;
}

using Parts = std::map<std::string_view, const TensorEntry*>;

class ModuleReader {
 public:
  ModuleReader(const Parts& parts, int bits_said) : parts_(parts), bits_said_(bits_said) {}

  // False: nothing here is a weight.
  bool read(ModuleContents& out);

 private:
  const TensorEntry* part(std::string_view what) const {
    const auto found = parts_.find(what);
    return found == parts_.end() ? nullptr : found->second;
  }
  void add(ModuleContents& out, std::initializer_list<std::string_view> names) const {
    for (const std::string_view what : names)
      if (const TensorEntry* tensor = part(what)) out.weight_bytes += tensor->bytes;
  }
  void set_shape(ModuleContents& out, std::int64_t rows, std::int64_t cols) const {
    out.rows = rows;
    out.cols = cols;
    out.parameters = rows * cols;
    out.matrix = true;
  }
  void read_packed_integers(ModuleContents& out, const TensorEntry& packed, const TensorEntry& scale);
  void read_qweight(ModuleContents& out, const TensorEntry& words);
  void read_scaled(ModuleContents& out, const TensorEntry& weight);
  void read_blocks(ModuleContents& out, const TensorEntry& blocks);

  const Parts& parts_;
  int bits_said_;
};

void ModuleReader::read_packed_integers(ModuleContents& out, const TensorEntry& packed,
                                        const TensorEntry& scale) {
  out.storage = Storage::ct_packed;
  out.bits = bits_said_ > 0 ? bits_said_ : 4;
  out.format = fmt::format("int{}", out.bits);
  const TensorEntry* index = part("weight_g_idx");
  const std::int64_t cols = index ? product(index->shape) : packed.shape[1] * 32 / out.bits;
  set_shape(out, packed.shape[0], cols);
  const std::int64_t groups = scale.shape.size() == 2 ? scale.shape[1] : 1;
  out.granularity = groups > 1 ? "group" : scale.shape.size() == 2 ? "channel" : "tensor";
  if (groups > 1) out.group_size = (cols + groups - 1) / groups;
  add(out, {"weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx", "weight_shape"});
}

void ModuleReader::read_qweight(ModuleContents& out, const TensorEntry& words) {
  const TensorEntry* scales = part("scales");
  const TensorEntry* index = part("g_idx");
  out.storage = index ? Storage::gptq : Storage::awq;
  add(out, {"qweight", "qzeros", "scales", "g_idx"});
  if (!scales || scales->shape.size() != 2 || words.shape.size() != 2) return;
  const std::int64_t columns = scales->shape[1];  // of the stored matrix: output channels
  // GPTQ packs along the input, whose size g_idx has; AWQ along the output.
  const std::int64_t inputs = index ? product(index->shape) : words.shape[0];
  const std::int64_t packed = index ? inputs : columns, word_count = index ? words.shape[0] : words.shape[1];
  if (packed > 0) out.bits = static_cast<int>(32 * word_count / packed);
  out.format = fmt::format("int{}", out.bits);
  set_shape(out, columns, inputs);
  const std::int64_t groups = scales->shape[0];
  out.granularity = groups > 1 ? "group" : "channel";
  if (groups > 1) out.group_size = (inputs + groups - 1) / groups;
}

// `weight` of one byte a code with a scale beside it.
void ModuleReader::read_scaled(ModuleContents& out, const TensorEntry& weight) {
  const TensorEntry* scale = part("weight_scale");
  if (!scale) scale = part("weight_scale_inv");
  if (!scale) scale = part("SCB");
  const bool is_float = weight.dtype.starts_with("F8");
  const std::int64_t cols = weight.shape.back(),
                     rows = product(weight.shape) / std::max<std::int64_t>(1, cols);
  set_shape(out, rows, cols);
  add(out, {"weight", "weight_scale", "weight_scale_inv", "SCB", "weight_zero_point", "weight_format"});
  out.bits = 8;
  if (scale && is_float && scale->dtype == "U8") {
    out.storage = Storage::mxfp8;
    out.format = "mxfp8_e4m3";
    out.group_size = 32;
    return;
  }
  out.storage = is_float ? Storage::fp8 : Storage::int8;
  out.format = !is_float ? "int8" : weight.dtype == "F8_E5M2" ? "fp8_e5m2" : "fp8_e4m3";
  if (!scale) return;
  const std::int64_t scales = product(scale->shape);
  if (scales <= 1 && rows > 1) {
    out.granularity = "tensor";
  } else if (scales == rows) {
    out.granularity = "channel";
  } else {
    const std::int64_t across = scale->shape.empty() ? 1 : scale->shape.back();
    out.granularity = scales == rows * across ? "group" : "block";
    out.group_size = (cols + across - 1) / std::max<std::int64_t>(1, across);
  }
}

// gpt-oss: blocks U8 [experts, out, in / 32, 16].
void ModuleReader::read_blocks(ModuleContents& out, const TensorEntry& blocks) {
  out.storage = Storage::mxfp4;
  out.format = "mxfp4";
  out.bits = 4;
  out.group_size = 32;
  const std::int64_t values = 2 * product(blocks.shape);
  const std::int64_t cols =
      blocks.shape.size() >= 2 ? 2 * blocks.shape.back() * blocks.shape[blocks.shape.size() - 2] : values;
  set_shape(out, values / std::max<std::int64_t>(1, cols), cols);
  add(out, {"_blocks", "_scales"});
}

bool ModuleReader::read(ModuleContents& out) {
  out.input_scale = part("input_scale") || part("input_global_scale");
  const TensorEntry* scale = part("weight_scale");
  if (const TensorEntry* packed = part("weight_packed"); packed && packed->shape.size() == 2) {
    if (packed->dtype == "I32" && scale) {
      read_packed_integers(out, *packed, *scale);
      return true;
    }
    const bool nvfp4 = scale && scale->dtype == "F8_E4M3";
    out.storage = nvfp4 ? Storage::nvfp4 : Storage::mxfp4;
    out.format = nvfp4 ? "nvfp4" : "mxfp4";
    out.bits = 4;
    out.group_size = nvfp4 ? 16 : 32;
    set_shape(out, packed->shape[0], packed->shape[1] * 2);
    add(out, {"weight_packed", "weight_scale", "weight_global_scale"});
    return true;
  }
  if (const TensorEntry* blocks = part("_blocks")) {
    read_blocks(out, *blocks);
    return true;
  }
  if (const TensorEntry* words = part("qweight")) {
    read_qweight(out, *words);
    return true;
  }
  const TensorEntry* weight = part("weight");
  if (!weight) return false;
  if (part("weight.absmax") && weight->dtype == "U8") {
    out.storage = Storage::bnb_4bit;
    out.bits = 4;
    out.format = part("weight.quant_state.bitsandbytes__fp4") ? "bnb_fp4" : "nf4";
    out.group_size = 64;
    out.parameters = 2 * product(weight->shape);  // [n / 2, 1]: the matrix's own shape is not in the header
    out.rows = 1;
    out.cols = out.parameters;
    out.matrix = true;
    add(out,
        {"weight", "weight.absmax", "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map",
         "weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"});
    return true;
  }
  const bool packed_fp4 = weight->dtype == "U8" || weight->dtype == "F4";
  if (packed_fp4 && scale && weight->shape.size() >= 2) {
    const std::int64_t pair = weight->dtype == "F4" ? 1 : 2;  // F4's shape counts values
    const bool nvfp4 = scale->dtype == "F8_E4M3";
    out.storage = nvfp4 ? Storage::nvfp4 : Storage::mxfp4;
    out.format = nvfp4 ? "nvfp4" : "mxfp4";
    out.bits = 4;
    out.group_size = nvfp4 ? 16 : 32;
    set_shape(out, product(weight->shape) / weight->shape.back(), weight->shape.back() * pair);
    add(out, {"weight", "weight_scale", "weight_scale_2"});
    return true;
  }
  const bool eight = weight->dtype.starts_with("F8") || weight->dtype == "I8";
  const bool scaled = scale || part("weight_scale_inv") || part("SCB");
  if ((eight || (weight->dtype == "U8" && part("SCB"))) && !weight->shape.empty() &&
      (scaled || weight->dtype != "U8")) {
    read_scaled(out, *weight);
    return true;
  }
  out.format = weight->dtype;
  out.parameters = product(weight->shape);
  out.dimensions = weight->shape.size();
  out.matrix = out.dimensions >= 2;
  out.cols = weight->shape.empty() ? 1 : weight->shape.back();
  out.rows = out.cols > 0 ? out.parameters / out.cols : 0;
  out.weight_bytes = weight->bytes;
  return true;
}

}  // namespace

std::string_view storage_name(Storage storage) {
  switch (storage) {
    case Storage::plain:
      return "plain";
    case Storage::ct_packed:
      return "compressed-tensors pack-quantized";
    case Storage::int8:
      return "INT8";
    case Storage::fp8:
      return "FP8";
    case Storage::nvfp4:
      return "NVFP4";
    case Storage::mxfp4:
      return "MXFP4";
    case Storage::mxfp8:
      return "MXFP8";
    case Storage::gptq:
      return "GPTQ";
    case Storage::awq:
      return "AWQ";
    case Storage::bnb_4bit:
      return "bitsandbytes 4 bit";
    case Storage::ggml:
      return "GGUF";
  }
  throw std::logic_error("storage");
}

void tell_modules(Contents& contents, int bits_said) {
  std::map<std::string_view, Parts> by_module;
  for (const TensorEntry& tensor : contents.tensors) {
    contents.bytes += tensor.bytes;
    const auto [module, what] = split_name(tensor.name);
    if (is_kv_scale(module, what))
      contents.kv_scales.push_back(tensor.name);
    else
      by_module[module].emplace(what, &tensor);
  }
  for (const auto& [name, parts] : by_module) {
    ModuleContents module;
    module.name = name;
    const bool weights = ModuleReader(parts, bits_said).read(module);
    // Biases of a Linear, of experts (`gate_up_proj_bias`), of a router (`e_score_correction_bias`).
    const auto is_bias = [](std::string_view what) { return what == "bias" || what.ends_with("_bias"); };
    for (const auto& [what, tensor] : parts)
      if (is_bias(what)) contents.parameters += product(tensor->shape);
    if (weights) {
      contents.parameters += module.parameters;
      contents.modules.emplace(module.name, std::move(module));
      continue;
    }
    // Parameters that are no `weight`: attention sinks, states.
    for (const auto& [what, tensor] : parts) {
      if (is_bias(what)) continue;
      if (tensor->dtype.starts_with("F") || tensor->dtype.starts_with("BF"))
        contents.parameters += what.find("scale") == what.npos ? product(tensor->shape) : 0;
    }
  }
}

Contents read_contents(const std::filesystem::path& directory, int bits_said) {
  const HfDirectory files = open_hf_directory(directory, true);
  Contents out;
  out.files = static_cast<std::int64_t>(files.shards.size());
  out.warnings = files.warnings;
  out.tensors.reserve(files.tensors.size());
  for (const HfTensor& tensor : files.tensors) {
    const SafetensorsEntry& entry = *tensor.entry;
    if (!entry.known_dtype)
      out.warnings.push_back(fmt::format("tensor {} of {} has the unknown dtype {}",
                                         quantmap::quoted(entry.name), files.shards[tensor.shard].name(),
                                         quantmap::quoted(entry.dtype)));
    out.tensors.push_back({entry.name, std::string(entry.dtype), entry.shape, entry.bytes});
  }
  tell_modules(out, bits_said);
  return out;
}

Contents read_gguf_contents(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  Contents out;
  out.gguf = true;
  out.files = 1;
  std::map<std::string, std::int64_t> bytes_by_type;
  for (const GgufTensor& tensor : file.tensors()) {
    out.tensors.push_back({tensor.name, std::string(tensor.type->name), tensor.shape, tensor.bytes});
    out.bytes += tensor.bytes;
    ModuleContents module;
    module.name =
        tensor.name.ends_with(".weight") ? tensor.name.substr(0, tensor.name.size() - 7) : tensor.name;
    module.format = tensor.type->name;
    module.storage = tensor.type->block > 1 ? Storage::ggml : Storage::plain;
    module.cols = tensor.shape.empty() ? 1 : tensor.shape.back();
    module.parameters = product(tensor.shape);
    module.rows = module.cols > 0 ? module.parameters / module.cols : 0;
    module.group_size = tensor.type->block > 1 ? tensor.type->block : 0;
    module.weight_bytes = tensor.bytes;
    module.matrix = tensor.shape.size() >= 2;
    out.parameters += module.parameters;
    if (module.matrix) bytes_by_type[module.format] += tensor.bytes;
    out.modules.emplace(module.name, std::move(module));
  }
  if (const auto type = file.integer("general.file_type")) {
    const auto known = std::find_if(kFileTypes.begin(), kFileTypes.end(),
                                    [&](const FileType& one) { return one.id == *type; });
    if (known == kFileTypes.end()) {
      out.warnings.push_back(fmt::format("general.file_type is {}, which is not known", *type));
    } else {
      out.file_type = known->name;
      // `Q4_K_M` is mostly Q4_K; of the type it is named for there must be some.
      std::string stem = out.file_type;
      for (const char* size : {"_S", "_M", "_L", "_MOE"})
        if (stem.ends_with(size) && stem.find("_K") != stem.npos)
          stem.resize(stem.size() - std::string_view(size).size());
      if (stem == "MXFP4_MOE") stem = "MXFP4";
      const bool mixture = stem.starts_with("IQ");  // IQ2_M and the like mix types of other names
      if (!mixture && !bytes_by_type.contains(stem))
        out.warnings.push_back(
            fmt::format("general.file_type says {}, and no matrix is {}", out.file_type, stem));
    }
  }
  return out;
}

}  // namespace quantmap
