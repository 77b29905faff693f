// Formats with blocks of their own: MX, NVFP4, tables of levels, GGUF (formats.md, sections 3 to 6).
#include <algorithm>
#include <vector>

#include "formats/encoded.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_rows.hpp"
#include "formats/nvfp4.hpp"
#include "formats/quantize_job.hpp"

namespace quantmap {

void quantize_mx(const Job& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    const auto round = job.spec.method == Method::mse ? round_mx_clipped : round_mx;
    round(job.spec.format->element, job.x + first, job.cols, job.spec.rule, job.output.begin(first),
          job.counts);
    job.output.end(first, job.cols);
  }
}

void quantize_nvfp4(const Job& job) {
  const QuantSpec& spec = job.spec;
  float amax = nvfp4_unit_amax(spec.four_over_six);
  if (!spec.no_global) {
    amax = job.range ? job.range->amax
                     : measure_range({job.x, static_cast<std::size_t>(job.rows * job.cols)}).amax;
  }
  const float g = nvfp4_tensor_scale(amax);
  if (job.outer) *job.outer = spec.four_over_six ? FourOverSix(amax).decode_scale : g;
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    float* out = job.output.begin(first);
    if (spec.four_over_six) {
      round_nvfp4_4over6(job.x + first, job.cols, amax, job.decode, out, job.counts);
    } else {
      const auto round = spec.method == Method::mse ? round_nvfp4_clipped : round_nvfp4;
      round(job.x + first, job.cols, g, job.decode, out, job.counts);
    }
    job.output.end(first, job.cols);
  }
}

std::int64_t lookup_chunk(const QuantSpec& spec) { return std::int64_t{64} * spec.format->block; }

void quantize_lookup(const Job& job) {
  const Format& format = *job.spec.format;
  const std::int64_t values = job.rows * job.cols, block = format.block, chunk = lookup_chunk(job.spec);
  std::vector<float> decoded;
  if (job.spec.nested) {
    std::vector<float> absmax(static_cast<std::size_t>((values + block - 1) / block));
    lookup_absmax(block, job.x, values, absmax.data());
    decoded = nest_absmax(absmax).decoded;
  }
  for (std::int64_t first = 0; first < values; first += chunk) {
    const std::int64_t count = std::min(chunk, values - first);
    const float* absmax = job.spec.nested ? decoded.data() + first / block : nullptr;
    float* out = job.output.begin(first);
    if (job.spec.method == Method::mse)
      round_lookup_clipped(format.element, block, job.x + first, count, out, job.counts);
    else
      round_lookup(format.element, block, job.x + first, count, absmax, out, job.counts);
    job.output.end(first, count);
  }
}

void quantize_ggml(const Job& job) {
  const GgmlType& type = ggml_stored_type(*job.spec.format, job.cols);
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    round_ggml(type, job.x + first, job.cols, job.output.begin(first), job.counts);
    job.output.end(first, job.cols);
  }
}

}  // namespace quantmap
