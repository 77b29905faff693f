// The readers of the dialects: each fills a QuantConfig from the object that names the quantization.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "map/quant_config/quant_config.hpp"

namespace quantmap {

using QuantJson = nlohmann::json;

// Keys of one object, read without throwing: what has another type is a warning, and counts as absent.
class QuantFields {
 public:
  QuantFields(const QuantJson& object, std::string place, std::vector<std::string>& warnings)
      : object_(object), place_(std::move(place)), warnings_(warnings) {}

  const QuantJson* find(const char* key) const;  // there and not null
  std::optional<std::int64_t> integer(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> string(const char* key) const;
  std::vector<std::string> strings(const char* key) const;  // absent: empty
  const std::string& place() const { return place_; }
  std::string place(const char* key) const { return place_ + "." + key; }
  void warn(std::string text) const { warnings_.push_back(std::move(text)); }

 private:
  void wrong(const char* key, const char* expected) const;
  const QuantJson& object_;
  std::string place_;
  std::vector<std::string>& warnings_;
};

// A choice with its specification from the registry, where it has the format. `words` are the grammar's
// (`g128:asym`).
NumberChoice make_choice(const std::string& format, int bits, const std::string& words, Role role,
                         const std::string& source);

void read_compressed_tensors(const QuantFields& fields, QuantConfig& out);
void read_modelopt(const QuantFields& fields, QuantConfig& out);
void read_gptq(const QuantFields& fields, QuantConfig& out);
void read_awq(const QuantFields& fields, QuantConfig& out);
void read_fp8(const QuantFields& fields, QuantConfig& out);
void read_fbgemm_fp8(const QuantFields& fields, QuantConfig& out);
void read_bitsandbytes(const QuantFields& fields, QuantConfig& out);
void read_mxfp4(const QuantFields& fields, QuantConfig& out);

// The KV cache as compressed-tensors says it (`kv_cache_scheme`), an object or ModelOpt's word.
std::optional<NumberChoice> read_kv_scheme(const QuantFields& fields, const char* key);
// One of ModelOpt's algorithms for the cache: FP8, NVFP4, INT8, NVFP4_AFFINE.
std::optional<NumberChoice> kv_by_algorithm(const QuantFields& fields, const std::string& algorithm,
                                            const std::string& source);
// A choice of compressed-tensors: `num_bits`, `type`, `strategy`, `group_size`, …
std::optional<NumberChoice> read_ct_number(const QuantFields& fields, const char* key, Role role);

}  // namespace quantmap
