// Rotary position embedding (Su et al. 2021, arXiv 2104.09864) in the half-split layout of HF checkpoints:
// pair i of a head is (x[i], x[i + head_dim/2]).
#pragma once

#include <cstdint>

namespace quantmap {

// Rotates `heads` heads of each row in place. x: [rows][stride], the heads at its start, head_dim each;
// cosines, sines: [rows][head_dim/2], those of the rows' positions.
void rope(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
          const float* cosines, const float* sines);
void rope_ref(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
              const float* cosines, const float* sines);

}  // namespace quantmap
