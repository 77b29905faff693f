// Laws of the outlier tables, on tensors made here whose answers are known; and that no bit depends on how
// windows are grouped or on threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "core/random.hpp"
#include "formats/quantize.hpp"
#include "sweep/outlier_tables.hpp"

namespace quantmap {
namespace {

using ::testing::SizeIs;

constexpr std::int64_t kTokens = 40;

ModelConfig config() {
  ModelConfig c;
  c.hidden_size = 64;
  c.intermediate_size = 96;
  c.layers = 1;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_dim = 32;
  c.window = {0};
  return c;
}

std::vector<Walker> walkers(const std::vector<std::string>& schemes) {
  std::vector<Walker> all(1);
  for (const std::string& scheme : schemes) all.push_back({Scheme::parse(scheme), Compute::bf16});
  return all;
}

// Values in [-1, 1) everywhere; window w of every slot has numbers of its own.
LayerTensors tensors_of(const ModelConfig& c, std::int64_t first_window, std::size_t windows) {
  LayerTensors tensors(c, 1, OutlierTables::slots(), static_cast<std::int64_t>(windows) * kTokens);
  tensors.start(first_window, std::vector<std::int64_t>(windows, kTokens));
  for (std::size_t s = 0; s < kLayerSlots; ++s) {
    const auto slot = static_cast<LayerSlot>(s);
    if (!tensors.keeps(slot)) continue;
    for (std::size_t w = 0; w < windows; ++w) {
      SplitMix64 random(1000 * s + static_cast<std::uint64_t>(first_window) + w);
      float* x = tensors.rows(slot, 0, w);
      for (std::int64_t i = 0; i < kTokens * tensors.width(slot); ++i)
        x[i] = static_cast<float>(2 * random.uniform() - 1);
    }
  }
  return tensors;
}

const SiteOutliers& site(const std::vector<SiteOutliers>& sites, const std::string& name) {
  for (const SiteOutliers& s : sites)
    if (s.site == name) return s;
  throw std::runtime_error("no site " + name);
}

const OutlierShare& share(const std::vector<OutlierShare>& shares, int walker, const std::string& name) {
  for (const OutlierShare& s : shares)
    if (s.walker == walker && s.site == name) return s;
  throw std::runtime_error("no share of " + name);
}

constexpr const char* kStream = "model.layers.0 output";
constexpr const char* kDown = "model.layers.0.mlp.down_proj input";

TEST(OutlierTables, MassiveIsAbove100And1000TimesTheMedianBothTaken) {
  const ModelConfig c = config();
  LayerTensors tensors = tensors_of(c, 0, 1);
  float* x = tensors.rows(LayerSlot::layer_output, 0, 0);
  // Magnitudes of 0.25 but for four: the median is 0.25 exactly, so 250 is the least massive value.
  for (std::int64_t i = 0; i < kTokens * c.hidden_size; ++i) x[i] = i % 2 == 0 ? 0.25F : -0.25F;
  x[3 * c.hidden_size + 5] = -250;
  x[3 * c.hidden_size + 6] = std::nextafter(250.0F, 0.0F);
  x[9 * c.hidden_size] = 4000;
  x[9 * c.hidden_size + 1] = 101;
  OutlierTables tables(c, walkers({}));
  tables.measure_layer(0, 0, tensors);
  const SiteOutliers stream = site(tables.sites(), kStream);
  EXPECT_EQ(stream.massive_values, 2);
  EXPECT_EQ(stream.massive_rows, 2);
  EXPECT_EQ(stream.massive_windows, 1);
  ASSERT_THAT(stream.peaks, SizeIs(2));
  EXPECT_EQ(stream.peaks[0].token, 9);
  EXPECT_EQ(stream.peaks[0].channel, 0);
  EXPECT_EQ(stream.peaks[0].value, 4000);
  EXPECT_EQ(stream.peaks[0].median_abs, 0.25);
  EXPECT_EQ(stream.peaks[1].token, 3);
  EXPECT_EQ(stream.peaks[1].channel, 5);
  EXPECT_EQ(stream.peaks[1].value, -250);
}

TEST(OutlierTables, NothingIsMassiveWhereTheLargestIs100) {
  const ModelConfig c = config();
  LayerTensors tensors = tensors_of(c, 0, 1);
  float* x = tensors.rows(LayerSlot::layer_output, 0, 0);
  std::fill(x, x + kTokens * c.hidden_size, 0.0F);
  x[7] = 100;
  OutlierTables tables(c, walkers({}));
  tables.measure_layer(0, 0, tensors);
  EXPECT_EQ(site(tables.sites(), kStream).massive_values, 0);
  x[7] = std::nextafter(100.0F, 200.0F);
  OutlierTables above(c, walkers({}));
  above.measure_layer(0, 0, tensors);
  EXPECT_EQ(site(above.sites(), kStream).massive_values, 1);  // the median is 0: any ratio is enough
}

TEST(OutlierTables, CrestFactorAndKurtosisEqualTwoPassesInDouble) {
  const ModelConfig c = config();
  const LayerTensors tensors = tensors_of(c, 0, 3);
  OutlierTables tables(c, walkers({}));
  tables.measure_layer(0, 0, tensors);
  std::vector<double> values;
  for (std::size_t w = 0; w < 3; ++w) {
    const float* x = tensors.rows(LayerSlot::down_input, 0, w);
    values.insert(values.end(), x, x + kTokens * c.intermediate_size);
  }
  double sum = 0, square = 0, amax = 0;
  for (const double v : values) {
    sum += v;
    square += v * v;
    amax = std::max(amax, std::abs(v));
  }
  const auto n = static_cast<double>(values.size());
  double m2 = 0, m4 = 0;
  for (const double v : values) {
    const double d = v - sum / n;
    m2 += d * d;
    m4 += d * d * d * d;
  }
  const SiteOutliers down = site(tables.sites(), kDown);
  EXPECT_NEAR(down.crest().value(), amax / std::sqrt(square / n), 1e-12);
  EXPECT_NEAR(down.moments.kurtosis().value(), (m4 / n) / (m2 / n * m2 / n), 1e-12);
  EXPECT_EQ(down.moments.count(), static_cast<std::int64_t>(values.size()));
  EXPECT_EQ(down.rows, 3 * kTokens);
}

// One huge value under one scale for the tensor: every other value loses, the massive one does not.
TEST(OutlierTables, SharesAddUpToThePlainSquaredError) {
  const ModelConfig c = config();
  LayerTensors tensors = tensors_of(c, 0, 2);
  for (std::size_t w = 0; w < 2; ++w) tensors.rows(LayerSlot::down_input, 0, w)[17] = 3000;  // first token
  tensors.rows(LayerSlot::down_input, 0, 1)[5 * c.intermediate_size + 3] = 2000.5F;
  OutlierTables tables(c, walkers({"a=int8:tensor", "W4A16", "a=int8:tensor,kv=int8:token"}));
  tables.measure_layer(0, 0, tensors);
  const auto shares = tables.shares();
  for (const int walker : {1, 3}) {
    const OutlierShare& own = share(shares, walker, kDown);
    double all = 0, values = 0, rows = 0, rest = 0;
    for (std::size_t w = 0; w < 2; ++w) {
      const float* x = tensors.rows(LayerSlot::down_input, 0, w);
      const float scale = 3000.0F / 127;
      for (std::int64_t i = 0; i < kTokens * c.intermediate_size; ++i) {
        const double error = double{std::nearbyint(x[i] / scale) * scale} - double{x[i]};
        const bool second = w == 1 && i / c.intermediate_size == 5;
        all += error * error;
        if (std::abs(x[i]) > 1000) values += error * error;
        if (i < c.intermediate_size || second) rows += error * error;
        if (i >= c.intermediate_size) rest += error * error;
      }
    }
    EXPECT_NEAR(own.error.all, all, 1e-9 * all);
    EXPECT_NEAR(own.error.massive_values, values, 1e-9 * all);
    EXPECT_GT(own.error.massive_values, 0);
    EXPECT_NEAR(own.error.massive_rows, rows, 1e-9 * all);
    EXPECT_NEAR(own.error_without_first.all, rest, 1e-9 * all);
  }
  for (const OutlierShare& s : shares) {
    EXPECT_NE(s.walker, 2) << "W4A16 quantizes no activation";
    EXPECT_TRUE(s.walker == 3 || (s.site.find(" key") == std::string::npos)) << s.site;
  }
  EXPECT_GT(share(shares, 3, "model.layers.0.self_attn key").error.all, 0);
}

TEST(OutlierTables, NonFiniteValuesAreCountedAndLeftOut) {
  const ModelConfig c = config();
  LayerTensors tensors = tensors_of(c, 0, 1);
  float* x = tensors.rows(LayerSlot::layer_output, 0, 0);
  x[70] = std::numeric_limits<float>::quiet_NaN();
  x[200] = std::numeric_limits<float>::infinity();
  OutlierTables tables(c, walkers({"a=int8:token"}));
  tables.measure_layer(0, 0, tensors);
  const SiteOutliers stream = site(tables.sites(), kStream);
  EXPECT_EQ(stream.nonfinite, 2);
  EXPECT_EQ(stream.moments.count(), kTokens * c.hidden_size - 2);
  EXPECT_EQ(stream.massive_values, 0) << "Inf is no activation";
  EXPECT_TRUE(std::isfinite(stream.rms().value()));
  const OutlierShare own = share(tables.shares(), 1, kStream);
  EXPECT_EQ(own.nonfinite, 2 * c.hidden_size) << "a token with a NaN has no scale";
  EXPECT_TRUE(std::isfinite(own.error.all));
}

TEST(OutlierTables, PassesAndThreadsChangeNoBit) {
  const ModelConfig c = config();
  const auto measure = [&](const std::vector<std::size_t>& passes, int threads) {
    set_thread_count(threads);
    OutlierTables tables(c, walkers({"NVFP4+KVFP8", "a=int8:tensor"}));
    std::int64_t first = 0;
    for (const std::size_t windows : passes) {
      LayerTensors tensors = tensors_of(c, first, windows);
      for (std::size_t w = 0; w < windows; ++w) tensors.rows(LayerSlot::layer_output, 0, w)[9] = 5000;
      tables.measure_layer(0, first, tensors);
      first += static_cast<std::int64_t>(windows);
    }
    return std::pair{tables.sites(), tables.shares()};
  };
  const auto [sites, shares] = measure({5}, 1);
  for (const auto& [passes, threads] :
       std::vector<std::pair<std::vector<std::size_t>, int>>{{{1, 1, 1, 1, 1}, 2}, {{2, 3}, 3}, {{5}, 2}}) {
    const auto [other_sites, other_shares] = measure(passes, threads);
    ASSERT_EQ(other_sites.size(), sites.size());
    for (std::size_t i = 0; i < sites.size(); ++i) {
      EXPECT_EQ(other_sites[i].sum2, sites[i].sum2) << sites[i].site;
      EXPECT_EQ(other_sites[i].moments.kurtosis(), sites[i].moments.kurtosis()) << sites[i].site;
      EXPECT_EQ(other_sites[i].massive_values, sites[i].massive_values) << sites[i].site;
      ASSERT_EQ(other_sites[i].peaks.size(), sites[i].peaks.size()) << sites[i].site;
      for (std::size_t p = 0; p < sites[i].peaks.size(); ++p) {
        EXPECT_EQ(other_sites[i].peaks[p].window, sites[i].peaks[p].window);
        EXPECT_EQ(other_sites[i].peaks[p].value, sites[i].peaks[p].value);
      }
    }
    ASSERT_EQ(other_shares.size(), shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_EQ(other_shares[i].error.all, shares[i].error.all) << shares[i].site;
      EXPECT_EQ(other_shares[i].error.massive_rows, shares[i].error.massive_rows) << shares[i].site;
      EXPECT_EQ(other_shares[i].error_without_first.all, shares[i].error_without_first.all);
    }
  }
}

}  // namespace
}  // namespace quantmap
