#include "formats/bf16.hpp"
#include "kernels/matmul/matmul.hpp"

namespace quantmap {

void multiply_ref(OperandType type, const void* x, std::int64_t m, std::int64_t k, const void* w,
                  std::int64_t w_stride, bool transposed, std::int64_t n, float* y) {
  const auto value = [&](const void* data, std::int64_t i) {
    return type == OperandType::f32 ? static_cast<const float*>(data)[i]
                                    : float_from_bf16(static_cast<const std::uint16_t*>(data)[i]);
  };
  for (std::int64_t r = 0; r < m; ++r)
    for (std::int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i)
        sum +=
            double{value(x, r * k + i)} * double{value(w, transposed ? c * w_stride + i : i * w_stride + c)};
      y[r * n + c] = static_cast<float>(sum);
    }
}

}  // namespace quantmap
