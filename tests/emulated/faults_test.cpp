// Mistakes planted in each kernel (kernels/cuda.hpp, Fault) must show: as an Error of the emulation or as a
// result that differs. The same runs without a fault must be clean, in every order of threads.
#include <functional>

#include "emulated/device.hpp"
#include "formats/samples.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/difference/difference.hpp"
#include "kernels/divergence/divergence.hpp"
#include "kernels/moments/moments.hpp"

namespace quantmap {
namespace {

using namespace testing;

// Runs one kernel on fixed inputs and returns all that it wrote.
using Run = std::vector<float> (*)(const DeviceKernels&);
struct Row {
  const char* name;
  Run run;
  bool off_by_one, missing_barrier, wrong_lane;  // which faults the kernel can have
};

// Doubles as two floats each: their last bits show too.
void append(std::vector<float>& to, std::initializer_list<double> values) {
  for (const double value : values) {
    const auto high = static_cast<float>(value);
    to.insert(to.end(), {high, static_cast<float>(value - high)});
  }
}

std::vector<float> run_attention(const DeviceKernels& kernels) {
  const Device<float> q(make_input(kNormal, 21 * 40, 1)), k(make_input(kNormal, 21 * 20, 2)),
      v(make_input(kNormal, 21 * 20, 3)), out(21 * 40);
  kernels.attention({.tokens = 21,
                     .group = 2,
                     .head_dim = 20,
                     .scale = 0.3F,
                     .q = q.data(),
                     .q_stride = 40,
                     .k = k.data(),
                     .v = v.data(),
                     .out = out.data(),
                     .out_stride = 40},
                    {});
  return out.host();
}
std::vector<float> run_difference(const DeviceKernels& kernels) {
  const Device<float> x(make_input(kNormal, 3 * 300, 1)), y(make_input(kNormal, 3 * 300, 2));
  const Device<RowDifference> out(3);
  kernels.difference(x.data(), y.data(), 3, 300, out.data(), {});
  std::vector<float> written;
  for (const RowDifference& d : out.host())
    append(written, {d.error2, d.reference2, d.value2, d.dot, d.max_error, d.amax});
  return written;
}
// The largest logit is the last, so that a search that stops one short misses it.
std::vector<float> run_divergence(const DeviceKernels& kernels) {
  std::vector<float> p_values = make_input(kNormal, 2 * 300, 1);
  p_values[299] = p_values[599] = 9;
  const Device<float> p(p_values), q(make_input(kNormal, 2 * 300, 2));
  const Device<std::int32_t> targets(std::vector<std::int32_t>{7, 299});
  const Device<ReferenceRow> references(2);
  const Device<TokenScore> out(2);
  kernels.reference_rows(p.data(), 300, targets.data(), 2, 300, references.data(), {});
  kernels.compare(q.data(), 300, p.data(), 300, targets.data(), 2, 300, references.data(), out.data(), {});
  std::vector<float> written;
  for (const ReferenceRow& r : references.host())
    append(written, {r.largest, r.log_sum, r.sum, static_cast<double>(r.top), r.lead, r.nll, r.p_target});
  for (const TokenScore& s : out.host())
    append(written, {s.nll, s.kl, s.tv, s.delta_p, double(s.top1), double(s.margin_flip), double(s.greedy)});
  return written;
}
std::vector<float> run_hadamard(const DeviceKernels& kernels) {
  const Device<float> x(make_input(kNormal, 2 * 1024, 1)), out(2 * 1024);
  kernels.hadamard(x.data(), 2, 1024, 512, out.data(), {});
  return out.host();
}
// The peak is the last of an odd lane and of a row.
std::vector<float> run_peaks(const DeviceKernels& kernels) {
  std::vector<float> values = make_input(kNormal, 2 * 300, 1);
  values[299] = -9, values[300 + 31] = 9;
  const Device<float> x(values);
  const Device<RowPeak> out(2);
  kernels.peaks(x.data(), 2, 300, out.data(), {});
  std::vector<float> written;
  for (const RowPeak& p : out.host()) append(written, {static_cast<double>(p.index), p.value});
  return written;
}
std::vector<float> run_percentiles(const DeviceKernels& kernels) {
  std::vector<float> values = make_input(kNormal, 2 * 300, 1);
  values[299] = values[599] = 9;
  const Device<float> x(values), median(2), most(2);
  kernels.percentiles(x.data(), 2, 300, 0.5, median.data(), {});
  kernels.percentiles(x.data(), 2, 300, 1, most.data(), {});
  return {median.host()[0], median.host()[1], most.host()[0], most.host()[1]};
}
std::vector<float> run_moments(const DeviceKernels& kernels) {
  const Device<float> x(make_input(kNormal, 3 * 300, 1));
  const Device<RowMoments> out(3);
  kernels.moments(x.data(), 3, 300, out.data(), {});
  std::vector<float> written;
  for (const RowMoments& m : out.host())
    append(written, {static_cast<double>(m.count), m.mean, m.m2, m.m3, m.m4});
  return written;
}
std::vector<float> run_rms_norm(const DeviceKernels& kernels) {
  const Device<float> x(make_input(kNormal, 3 * 300, 1)), weight(make_input(kNormal, 300, 2)), out(900);
  kernels.rms_norm(x.data(), 300, weight.data(), 1e-6F, 3, 300, out.data(), 300, {});
  return out.host();
}

std::vector<float> run_rope(const DeviceKernels& kernels) {
  const Device<float> x(make_input(kNormal, 3 * 128, 1)), angles(make_input(kNormal, 3 * 32, 2));
  kernels.rope(x.data(), 128, 3, 2, 64, angles.data(), angles.data(), {});
  return x.host();
}
std::vector<float> run_swiglu(const DeviceKernels& kernels) {
  const Device<float> gate(make_input(kNormal, 3 * 300, 1)), up(make_input(kNormal, 3 * 300, 2)), out(900);
  kernels.swiglu(gate.data(), 300, up.data(), 300, 3, 300, out.data(), 300, {});
  return out.host();
}

// Errors, values and counts. The largest values are the last of their rows and blocks.
std::vector<float> run_quantizer(const DeviceKernels& kernels, const QuantSpec& spec) {
  std::vector<float> values = make_input(kNormal, 3 * 320, 1);
  for (std::size_t i = 15; i < values.size(); i += 16) values[i] = 5 + static_cast<float>(i) / 1000;
  const Device<float> x(values), out(3 * 320);
  const Device<RowDifference> errors(3);
  const Device<QuantCounts> counts(std::vector<QuantCounts>(1));
  kernels.quantize_error(spec, 3, 320, x.data(), nullptr, errors.data(), counts.data(), {});
  kernels.quantize_dequantize(spec, 3, 320, x.data(), out.data(), nullptr, nullptr, {});
  std::vector<float> written = out.host();
  for (const RowDifference& d : errors.host())
    append(written, {d.error2, d.reference2, d.value2, d.dot, d.max_error, d.amax});
  append(written, {static_cast<double>(counts.host()[0].saturated)});
  return written;
}
std::vector<float> run_int4_groups(const DeviceKernels& kernels) {
  return run_quantizer(kernels, spec_of("int4", Granularity::group, 32));
}
std::vector<float> run_int8_columns(const DeviceKernels& kernels) {
  return run_quantizer(kernels, spec_of("int8", Granularity::column));
}
std::vector<float> run_fp8_tensor(const DeviceKernels& kernels) {
  return run_quantizer(kernels, spec_of("fp8_e4m3", Granularity::tensor));
}
std::vector<float> run_mxfp4(const DeviceKernels& kernels) {
  return run_quantizer(kernels, spec_of("mxfp4"));
}
std::vector<float> run_nvfp4(const DeviceKernels& kernels) {
  return run_quantizer(kernels, spec_of("nvfp4"));
}
std::vector<float> run_nvfp4_4over6(const DeviceKernels& kernels) {
  QuantSpec spec = spec_of("nvfp4");
  spec.four_over_six = true;
  return run_quantizer(kernels, spec);
}
std::vector<float> run_nf4(const DeviceKernels& kernels) { return run_quantizer(kernels, spec_of("nf4")); }

// clang-format off
constexpr Row kRows[] = {
    {"attention", run_attention, true, true, true},
    {"difference", run_difference, true, true, true},
    {"divergence", run_divergence, true, true, true},
    {"hadamard", run_hadamard, true, true, false},
    {"peaks", run_peaks, true, true, true},
    {"percentiles", run_percentiles, true, true, true},
    {"moments", run_moments, true, true, true},
    {"quantize_int4_groups", run_int4_groups, true, true, true},
    {"quantize_int8_columns", run_int8_columns, true, true, true},
    {"quantize_fp8_tensor", run_fp8_tensor, true, true, true},
    {"quantize_mxfp4", run_mxfp4, true, true, true},
    {"quantize_nvfp4", run_nvfp4, true, true, true},
    {"quantize_nvfp4_4over6", run_nvfp4_4over6, true, true, true},
    {"quantize_nf4", run_nf4, true, true, true},
    {"rms_norm", run_rms_norm, true, true, true},
    {"rope", run_rope, true, false, false},
    {"swiglu", run_swiglu, true, false, false},
};
// clang-format on

class Faults : public ::testing::TestWithParam<Row> {};

// How a fault shows; empty: not at all.
std::string seen(const DeviceKernels& faulty, const Row& row) {
  try {
    return same_bits(row.run(faulty), row.run(emulated::kernels())) ? "" : "another result";
  } catch (const Error& error) {
    return error.what();
  }
}

// What is seen is recorded for docs/cuda.md (scripts/cuda_tables reads it).
TEST_P(Faults, AreCaught) {
  const Row& row = GetParam();
  const auto expect_seen = [&](const char* fault, bool possible, const DeviceKernels& faulty) {
    if (!possible) return;
    const std::string how = seen(faulty, row);
    EXPECT_NE(how, "") << fault;
    RecordProperty(fault, how);
  };
  expect_seen("off_by_one", row.off_by_one, off_by_one::kernels());
  expect_seen("missing_barrier", row.missing_barrier, missing_barrier::kernels());
  expect_seen("wrong_lane", row.wrong_lane, wrong_lane::kernels());
}

TEST_P(Faults, NoneWithoutOneInAnyOrderOfThreads) {
  const Row& row = GetParam();
  const std::vector<float> want = row.run(emulated::kernels());
  for (const float value : want) ASSERT_TRUE(std::isfinite(value));
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const emulation::ShuffledOrder order(seed);
    EXPECT_TRUE(same_bits(row.run(emulated::kernels()), want)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, Faults, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace quantmap
