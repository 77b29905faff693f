#include <bit>
#include <cmath>
#include <vector>

#include "kernels/hadamard/hadamard.hpp"

namespace quantmap {

void hadamard_ref(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out) {
  std::vector<double> run(static_cast<std::size_t>(size));
  for (std::int64_t begin = 0; begin < rows * cols; begin += size) {
    for (std::uint64_t i = 0; i < run.size(); ++i) {
      run[i] = 0;
      for (std::uint64_t j = 0; j < run.size(); ++j)
        run[i] += (std::popcount(i & j) % 2 ? -1.0 : 1.0) * x[begin + static_cast<std::int64_t>(j)];
    }
    for (std::size_t i = 0; i < run.size(); ++i)
      out[begin + static_cast<std::int64_t>(i)] =
          static_cast<float>(run[i] / std::sqrt(static_cast<double>(size)));
  }
}

}  // namespace quantmap
