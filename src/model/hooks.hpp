// Hooks: functions called at the sites of a forward pass (product.md, Words: site) with a read-only view.
// Capture, outliers and error measurement are all hooks. They run on the worker threads, tile by tile, in no
// fixed order: a hook must be thread-safe and must not depend on that order.
#pragma once

#include <cstdint>
#include <functional>

#include "model/architecture.hpp"

namespace quantmap {

enum class Site : std::uint8_t {
  linear_input,   // of SiteView::linear, before its activation is quantized
  linear_output,  // of SiteView::linear, bias added
  key,            // of a layer's attention, after norm and RoPE, before the cache's format
  value,
  query,         // after norm and RoPE, all heads
  layer_output,  // the residual stream after the layer
  embedding,     // model.embed_tokens output
  final_norm,    // model.norm output, the head's input
};

struct SiteView {
  Site site = Site::layer_output;
  LinearId linear = LinearId::q;  // for linear_input and linear_output
  int layer = -1;                 // -1 outside the layers
  int walker = 0;                 // 0: the reference
  std::int64_t window = 0;        // index in the run
  std::int64_t row_begin = 0;     // position of the first row in its window
  std::int64_t rows = 0;
  std::int64_t col_begin = 0;  // an output may come in several runs of columns
  std::int64_t cols = 0;
  std::int64_t width = 0;       // all columns of the site
  const float* data = nullptr;  // [rows][stride]
  std::int64_t stride = 0;
};

// q, k and v share one input, gate and up another: linear_input is called once, for q and for gate.
using Hook = std::function<void(const SiteView&)>;

}  // namespace quantmap
