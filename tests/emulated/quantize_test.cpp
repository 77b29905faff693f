// Quantizers of a device against the CPU's reference: codes, scales, values and counts to the bit.
#include "emulated/device.hpp"
#include "formats/encoded.hpp"
#include "formats/samples.hpp"
#include "kernels/quantize_error/quantize_error.hpp"

namespace quantmap {
namespace {

using namespace testing;

bool on_device(const QuantSpec& spec) {
  return spec.format->kind != FormatKind::ggml && spec.method == Method::rtn && !spec.nested;
}

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want[i]) << what << " " << i;
}

void expect_encoded(const NamedSpec& named, const Shape& shape, const std::vector<float>& x,
                    const TensorRange* range, const std::string& what) {
  const Encoded want = encode(named.spec, shape.rows, shape.cols, x.data(), range);
  const Device<float> in(x), tensor_scale(1);
  const Device<std::int32_t> codes(std::ssize(want.codes)), zeros(std::ssize(want.zero_points));
  const Device<float> scales(std::ssize(want.scales));
  const Device<std::uint8_t> block_scales(std::ssize(want.block_scales));
  const Device<QuantCounts> counts(std::vector<QuantCounts>(1));
  const EncodedArrays out{codes.data(), scales.data(), want.zero_points.empty() ? nullptr : zeros.data(),
                          block_scales.data(), tensor_scale.data()};
  emulated::kernels().encode(named.spec, shape.rows, shape.cols, in.data(), range, out, counts.data(), {});
  expect_equal(codes.host(), want.codes, what + ", code");
  expect_bits(scales.host(), want.scales, what + ", scale");
  expect_equal(zeros.host(), want.zero_points, what + ", zero point");
  expect_equal(block_scales.host(), want.block_scales, what + ", block scale");
  if (named.spec.format->kind == FormatKind::nvfp4) {
    EXPECT_EQ(tensor_scale.host()[0], want.tensor_scale) << what;
  }
  EXPECT_EQ(counts.host()[0], want.counts) << what;

  // Decoded in place of the input.
  std::vector<float> decoded(x.size());
  decode(want, decoded.data());
  const Device<QuantCounts> counted(std::vector<QuantCounts>(1));
  emulated::kernels().quantize_dequantize(named.spec, shape.rows, shape.cols, in.data(), in.data(), range,
                                          counted.data(), {});
  expect_bits(in.host(), decoded, what + ", decoded");
  EXPECT_EQ(counted.host()[0], want.counts) << what;
}

struct Row {
  std::string format;
  NamedSample sample;
};
std::vector<Row> rows() {
  std::vector<Row> all;
  for (const Format& format : formats()) {
    if (format.kind == FormatKind::ggml) continue;
    for (const NamedSample& sample :
         {kFiniteSamples[0], kFiniteSamples[2], kFiniteSamples[3], kFiniteSamples[6], kFiniteSamples[8],
          kFiniteSamples[10], kSpecialSamples[1]})
      all.push_back({std::string(format.id), sample});
  }
  return all;
}

class QuantizeOn : public ::testing::TestWithParam<Row> {};

// Each granularity and option of the format takes turns with the shapes.
TEST_P(QuantizeOn, CodesAndScalesEqualTheCpuToTheBit) {
  const auto& [format, kind] = GetParam();
  constexpr Shape kTried[] = {{3, 33}, {5, 65}, {2, 300}, {9, 12}, {1, 1}};
  std::size_t turn = 0, tried = 0;
  for (const NamedSpec& named : all_specs()) {
    if (named.spec.format->id != format || !on_device(named.spec)) continue;
    const Shape shape = kTried[turn++ % std::size(kTried)];
    expect_encoded(named, shape, sample(kind, shape), nullptr, named.name);
    if (HasFatalFailure()) return;
    ++tried;
  }
  EXPECT_GE(tried, 1U);
}

INSTANTIATE_TEST_SUITE_P(Emulated, QuantizeOn, ::testing::ValuesIn(rows()), [](const auto& row) {
  return as_name(row.param.format + "_" + row.param.sample.name);
});

// A range given from outside that leaves out what is not finite: Inf saturates, NaN stays NaN.
TEST(EmulatedQuantize, TakesTheRangeThatItIsGiven) {
  const Shape shape{4, 70};
  for (const NamedSample& kind : {kFiniteSamples[5], kSpecialSamples[0], kSpecialSamples[1]}) {
    const std::vector<float> x = sample(kind, shape);
    TensorRange range = measure_range(x);
    range.nonfinite = 0;
    range.max *= 0.5F, range.min *= 0.25F, range.amax *= 0.5F;
    for (const NamedSpec& named : all_specs())
      if (on_device(named.spec) && named.spec.needs_tensor_range())
        expect_encoded(named, shape, x, &range, named.name + ", " + kind.name);
  }
}

// One spec of each format and granularity.
TEST(EmulatedQuantize, ErrorIsThatOfTheCpu) {
  const Shape shape{3, 300};
  const std::vector<float> x = sample(kFiniteSamples[0], shape);
  const Device<float> in(x);
  for (const NamedSpec& named : all_specs()) {
    if (!on_device(named.spec) || named.spec.scale != ScaleType::f32 || named.spec.asymmetric) continue;
    const Device<RowDifference> errors(shape.rows);
    emulated::kernels().quantize_error(named.spec, shape.rows, shape.cols, in.data(), nullptr, errors.data(),
                                       nullptr, {});
    std::vector<RowDifference> want(3);
    quantize_error_ref(named.spec, shape.rows, shape.cols, x.data(), nullptr, want.data(), nullptr);
    for (std::size_t r = 0; r < 3; ++r) {
      const RowDifference got = errors.host()[r];
      const double unit = 300 * 0x1p-52;  // sums in another order
      EXPECT_LE(std::abs(got.error2 - want[r].error2), unit * want[r].error2) << named.name;
      EXPECT_LE(std::abs(got.value2 - want[r].value2), unit * want[r].value2) << named.name;
      EXPECT_LE(std::abs(got.dot - want[r].dot), unit * std::sqrt(want[r].reference2 * want[r].value2))
          << named.name;
      EXPECT_EQ(got.max_error, want[r].max_error) << named.name;
      EXPECT_EQ(got.amax, want[r].amax) << named.name;
      EXPECT_EQ(got.nonfinite, 0) << named.name;
    }
  }
}

TEST(EmulatedQuantize, OfNoValuesIsNothing) {
  const Device<RowDifference> errors(2);
  const Device<float> none(0);
  for (const char* id : {"int4", "mxfp4", "nvfp4", "nf4", "bf16"}) {
    const QuantSpec spec = spec_of(id, std::string(id) == "int4" ? Granularity::row : Granularity::own);
    emulated::kernels().quantize_error(spec, 2, 0, none.data(), nullptr, errors.data(), nullptr, {});
    EXPECT_EQ(errors.host()[1], RowDifference{}) << id;
    emulated::kernels().quantize_dequantize(spec, 0, 5, none.data(), none.data(), nullptr, nullptr, {});
  }
}

TEST(EmulatedQuantize, RefusesWhatTheCpuAloneDoes) {
  const Device<float> x(std::vector<float>(256, 1.0F));
  for (const NamedSpec& named : all_specs()) {
    if (on_device(named.spec)) continue;
    EXPECT_THROW(
        emulated::kernels().quantize_dequantize(named.spec, 1, 256, x.data(), x.data(), nullptr, nullptr, {}),
        Error)
        << named.name;
  }
}

}  // namespace
}  // namespace quantmap
