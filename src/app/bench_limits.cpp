#include "app/bench_limits.hpp"

#include <algorithm>
#include <cstring>

#include "core/parallel.hpp"
#include "core/random.hpp"
#include "formats/bf16.hpp"
#include "model/architecture.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kCopyBytes = std::int64_t{128} << 20;
constexpr std::int64_t kPackedBytes = std::int64_t{64} << 20;
constexpr double kRoundFlops = 1e9;  // of each thread between two barriers

// Normal values in the operand's type: what products run at when nothing is zero or subnormal.
std::vector<std::byte> operand(OperandType type, std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_gaussian(seed, values.data(), count);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * operand_bytes(type)));
  if (type == OperandType::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  auto* out = reinterpret_cast<std::uint16_t*>(bytes.data());
  for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_from_float(values[static_cast<std::size_t>(i)]);
  return bytes;
}

}  // namespace

std::vector<double> copy_bandwidth(int threads, int repetitions) {
  std::vector<char> from(static_cast<std::size_t>(kCopyBytes), 1), to(from.size());
  const std::int64_t piece = (kCopyBytes + threads - 1) / threads;
  const auto copy = [&](std::int64_t part, int) {
    const std::int64_t begin = part * piece, end = std::min(kCopyBytes, begin + piece);
    if (begin < end)
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
  };
  std::vector<double> rates;
  const auto bytes = static_cast<double>(kCopyBytes);
  if (threads == 1) {
    for (const Elapsed& time : time_calls(repetitions, 0, [&] { copy(0, 0); }))
      rates.push_back(bytes / time.cpu / 1e9);
  } else {
    for (const Elapsed& time : time_calls(repetitions, 0, [&] { parallel_for(threads, copy); }))
      rates.push_back(bytes / time.wall / 1e9);
  }
  return rates;
}

double linear_flops_per_token(const ModelConfig& config) {
  double products = static_cast<double>(config.vocab_size * config.hidden_size);
  for (const LinearId id : kLayerLinears) {
    const LinearShape shape = linear_shape(config, id);
    products += static_cast<double>(shape.out * shape.in) * config.layers;
  }
  return 2 * products;
}

double attention_flops_per_token(const ModelConfig& config, std::int64_t ctx) {
  double visible = 0;
  for (const std::int64_t window : config.window)
    for (std::int64_t t = 1; t <= ctx; ++t)
      visible += static_cast<double>(window > 0 ? std::min(window, t) : t);
  return 4 * visible * static_cast<double>(query_width(config)) / static_cast<double>(ctx);
}

ProductRate::ProductRate(const ModelConfig& config, OperandType type, const ProductCut& cut)
    : rows_(cut.rows) {
  const auto add = [&](std::int64_t out, std::int64_t in, double copies) {
    const auto same = std::find_if(shapes_.begin(), shapes_.end(),
                                   [&](const Shape& s) { return s.out == out && s.in == in; });
    if (same != shapes_.end())
      same->copies += copies;
    else
      shapes_.push_back({out, in, copies, {}, 0});
  };
  for (const LinearId id : kLayerLinears) {
    const LinearShape shape = linear_shape(config, id);
    add(shape.out, shape.in, config.layers);
  }
  add(config.vocab_size, config.hidden_size, 1);

  std::int64_t widest_in = 0, widest_out = 0;
  for (Shape& shape : shapes_) {
    const std::int64_t width = cut.outputs > 0 ? std::min(cut.outputs, shape.out) : shape.out;
    shape.pieces = (shape.out + width - 1) / width;
    const std::int64_t held =
        std::clamp(kPackedBytes / (width * shape.in * operand_bytes(type)), std::int64_t{1}, shape.pieces);
    for (std::int64_t piece = 0; piece < held; ++piece) {
      const std::int64_t outputs = std::min(width, shape.out - piece * width);
      const auto values = operand(type, outputs * shape.in, static_cast<std::uint64_t>(piece + 1));
      shape.chunks.emplace_back(type, values.data(), outputs, shape.in, rows_);
    }
    widest_in = std::max(widest_in, shape.in);
    widest_out = std::max(widest_out, width);
  }
  for (int worker = 0; worker < thread_count(); ++worker) {
    input_.push_back(operand(type, rows_ * widest_in, 99));
    output_.emplace_back(static_cast<std::size_t>(rows_ * widest_out));
  }
}

Elapsed ProductRate::per_token(double least) {
  Elapsed total;
  for (const Shape& shape : shapes_) {
    // Of what is multiplied for one tile; the last chunk may be narrower than those that stand in for it.
    std::int64_t outputs = 0;
    for (std::int64_t piece = 0; piece < shape.pieces; ++piece)
      outputs += shape.chunks[static_cast<std::size_t>(piece) % shape.chunks.size()].n();
    const double tile_flops = 2.0 * static_cast<double>(rows_) * static_cast<double>(outputs * shape.in);
    const std::int64_t tiles =
        thread_count() * std::max(std::int64_t{1}, static_cast<std::int64_t>(kRoundFlops / tile_flops));
    const auto times = time_calls(1, least, [&] {
      parallel_for(tiles, [&](std::int64_t, int worker) {
        const std::byte* x = input_[static_cast<std::size_t>(worker)].data();
        float* y = output_[static_cast<std::size_t>(worker)].data();
        for (std::int64_t piece = 0; piece < shape.pieces; ++piece)
          shape.chunks[static_cast<std::size_t>(piece) % shape.chunks.size()].multiply(x, rows_, y);
      });
    });
    const double tokens = static_cast<double>(tiles * rows_) / shape.copies * static_cast<double>(outputs) /
                          static_cast<double>(shape.out);
    total.wall += times[0].wall / tokens;
    total.cpu += times[0].cpu / tokens;
  }
  return total;
}

}  // namespace quantmap
