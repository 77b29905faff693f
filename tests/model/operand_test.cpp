// A product in operand form (scales outside, k blocks, lifts) is the product of the values that both formats
// store, for every form of weights with every form of activations.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/make_files.hpp"
#include "core/random.hpp"
#include "formats/bf16.hpp"
#include "model/operand.hpp"
#include "scheme/scheme.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using testing::fresh_dir;
using testing::TinyModel;
using testing::write_tiny_model;

constexpr std::int64_t kOut = 600;  // two chunks, the second short
constexpr std::int64_t kIn = 160;   // no multiple of 64 or 128: last blocks are short, NF4's cross rows
constexpr std::int64_t kRows = 5;
constexpr const char* kModule = "model.layers.0.mlp.gate_proj";

// One of each outer scale and each way to decode; `whole`: those that want the whole matrix at once.
constexpr const char* kWeights[] = {"bf16",
                                    "fp16",
                                    "int8:tensor",
                                    "int8:channel",
                                    "int4:g32",
                                    "int4:g128:asym",
                                    "int8:b128x128",
                                    "int8:b100x64",  // whole
                                    "fp8_e4m3:tensor",
                                    "fp8_e4m3:channel",
                                    "fp8_e4m3:g32",
                                    "fp8_e5m2:g128",
                                    "fp8_e4m3:b128x128",
                                    "mxfp4",
                                    "mxfp8_e4m3",
                                    "nvfp4",
                                    "nf4",
                                    "nf4:nested"};  // whole
constexpr const char* kActivations[] = {
    "bf16",          "fp16",         "int8:tensor", "int8:token", "int8:g32",
    "fp8_e4m3:g128", "fp8_e4m3:g64", "mxfp4",       "nvfp4",      "nf4"};

class Products : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyModel model;
    model.hidden = kIn;
    model.intermediate = kOut;
    model.dtype = "BF16";
    const auto dir = fresh_dir("operand");
    write_tiny_model(dir, model);
    checkpoint_.emplace(Checkpoint::open(dir));
  }

  // How far the product of two formats is from that of their stored values, in units of sum |x w|.
  double distance(const std::string& weight, const std::string& activation, Compute compute, float size) {
    const LinearForm form = linear_form(parse_quant_spec(weight, Role::weight),
                                        parse_quant_spec(activation, Role::activation), compute);
    std::vector<float> x(kRows * kIn), w(kOut * kIn);
    fill_gaussian(5, x.data(), kRows * kIn);
    for (float& value : x) value = round_to_bf16(value * size);
    checkpoint_->read(std::string(kModule) + ".weight", 0, kOut, w.data());
    const TensorRange range = measure_range(x);

    std::vector<std::byte> memory(static_cast<std::size_t>(activation_scratch_bytes(form, kRows, kIn)) + 64);
    void* scratch = memory.data();
    std::size_t room = memory.size();
    std::align(64, room - 64, scratch, room);
    const ActivationTile tile =
        prepare_activation(form, kRows, kIn, x.data(), &range, static_cast<std::byte*>(scratch), nullptr);
    const LinearWeights weights(*checkpoint_, kModule, kOut, kIn, false, form);
    std::vector<float> y(kRows * kOut), partial(kRows * kChunkRows);
    for (std::int64_t chunk = 0; chunk < weights.chunks(); ++chunk)
      weights.multiply(chunk, tile, y.data() + chunk * kChunkRows, kOut, partial.data());

    quantize_dequantize(form.weight, kOut, kIn, w.data(), w.data(), nullptr, nullptr);
    quantize_tokens(form.activation, kRows, kIn, x.data(), x.data(), &range, nullptr);
    double worst = 0;
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t o = 0; o < kOut; ++o) {
        double sum = 0, total = 0;
        for (std::int64_t i = 0; i < kIn; ++i) {
          const double term =
              double{x[static_cast<std::size_t>(r * kIn + i)]} * w[static_cast<std::size_t>(o * kIn + i)];
          sum += term;
          total += std::abs(term);
        }
        const double gap = std::abs(y[static_cast<std::size_t>(r * kOut + o)] - sum) / total;
        if (!(gap <= worst)) worst = gap;  // NaN stays
      }
    return worst;
  }

  std::optional<Checkpoint> checkpoint_;
};

// Values that BF16 holds exactly leave the FP32 sum's rounding only: kIn terms, each at most 2^-24 of the
// total, and a few roundings of scales. Decoded ones are rounded to BF16, 2^-9 for either operand.
double bound(const QuantSpec& weight, const QuantSpec& activation, Compute compute) {
  const LinearForm form = linear_form(weight, activation, compute);
  const auto exact = [&](const QuantSpec& spec, bool groups_may_stay_outside) {
    const OperandForm own = operand_form(spec);
    if (own.outer == OuterScale::row_group) return groups_may_stay_outside && own.group == form.k_block;
    if (own.outer == OuterScale::tile && kChunkRows % own.tile_rows != 0) return false;
    return own.exact_in_bf16;
  };
  const double sums = (kIn + 8) * 0x1p-24;
  return form.type == OperandType::f32 || (exact(weight, false) && exact(activation, true))
             ? sums
             : sums + 0x1.01p-8;
}

TEST_F(Products, EqualThoseOfStoredValues) {
  int cases = 0;
  for (const Compute compute : {Compute::bf16, Compute::f32})
    for (const std::string weight : kWeights)
      for (const std::string activation : kActivations) {
        const QuantSpec w = parse_quant_spec(weight, Role::weight);
        const QuantSpec x = parse_quant_spec(activation, Role::activation);
        const double gap = distance(weight, activation, compute, 1);
        EXPECT_TRUE(gap <= bound(w, x, compute))
            << weight << " with " << activation << ", " << compute_name(compute) << ": " << gap;
        ++cases;
      }
  EXPECT_EQ(cases, 2 * 18 * 10);
}

// oneDNN flushes BF16 subnormals: rows of tiny values are lifted, and nothing is lost.
TEST_F(Products, OfTinyValuesKeepTheirBits) {
  for (const char* activation : {"mxfp4", "mxfp8_e4m3"})
    for (const char* weight : {"mxfp4", "fp8_e4m3:b128x128"}) {
      const double gap = distance(weight, activation, Compute::bf16, 0x1p-125f);
      EXPECT_TRUE(gap <= 0x1p-14) << weight << " with " << activation << ": " << gap;
    }
}

}  // namespace
}  // namespace quantmap
