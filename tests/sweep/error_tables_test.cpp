// Laws of the error tables: what each scope means, against plain double arithmetic; sums, zeros and
// undefined numbers; and that no bit depends on passes or threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "checkpoint/make_files.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "formats/bf16.hpp"
#include "kernels/attention_divergence/attention_divergence.hpp"
#include "support/paths.hpp"
#include "sweep/errors.hpp"

namespace quantmap {
namespace {

using testing::fresh_dir;
using testing::TinyModel;
using testing::write_tiny_model;

std::vector<EvalWindow> random_windows(const std::vector<int>& lengths, int vocab, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<EvalWindow> windows;
  for (const int length : lengths) {
    std::vector<std::int32_t> ids;
    for (int t = 0; t < length; ++t)
      ids.push_back(static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(vocab)));
    windows.push_back(windows_of_ids({ids}, Protocol{})[0]);
  }
  return windows;
}

using Place = std::tuple<int, std::string, TensorKind, ErrorScope>;  // scheme, site, kind, scope
using Rows = std::map<Place, SiteError>;

Rows measure(const Checkpoint& checkpoint, const std::vector<std::string>& schemes,
             const std::vector<EvalWindow>& windows, std::int64_t per_pass, int threads,
             Compute compute = Compute::bf16, ErrorSelection selection = ErrorSelection::everything()) {
  set_thread_count(threads);
  ErrorJob job;
  job.checkpoint = &checkpoint;
  job.walkers.push_back({std::nullopt, compute});
  for (const std::string& scheme : schemes) job.walkers.push_back({Scheme::parse(scheme), compute});
  job.windows = &windows;
  job.selection = std::move(selection);
  SweepPlan plan;
  plan.windows_per_pass = per_pass;
  Rows rows;
  for (const SiteError& row : measure_errors(job, plan))
    EXPECT_TRUE(rows.emplace(Place{row.walker, row.site, row.kind, row.scope}, row).second) << row.site;
  return rows;
}

// Everything a row holds, to the bit.
std::string bits(const SiteError& row) {
  std::string text = row.sums.errors().pack() + std::to_string(row.sums.saturated()) +
                     std::to_string(row.divergence.count());
  for (const Number& number : {row.sums.rest_error(), row.sums.residual_error(), row.sums.kurtosis(),
                               row.divergence.mean(), row.divergence.rows().quantile(0.9)}) {
    const double value = number.value_or(-1);
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return text;
}

class ErrorTablesLaw : public ::testing::Test {
 protected:
  void SetUp() override { write_tiny_model(dir_, model()); }
  static TinyModel model() {
    TinyModel model;
    model.hidden = 64;
    model.intermediate = 160;
    model.vocab = 600;
    return model;
  }
  std::filesystem::path dir_ = fresh_dir("errors");
};

const std::vector<std::string> kMixed = {
    "W8A8",      "W4A16+KVFP8",
    "NVFP4",     "w=nf4:nested,kv=int8:tensor",
    "FP8_BLOCK", "w=int8:tensor,a=fp8_e4m3:tensor,k=int4:channel,v=mxfp4"};

TEST_F(ErrorTablesLaw, PassesAndThreadsChangeNoBit) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows({150, 130, 150, 90}, 600, 7);
  const Rows whole = measure(checkpoint, kMixed, windows, 4, 1);
  EXPECT_GT(whole.size(), kMixed.size() * 2 * 60);
  for (const auto& [per_pass, threads] : std::vector<std::pair<int, int>>{{4, 3}, {1, 2}, {3, 1}}) {
    const Rows other = measure(checkpoint, kMixed, windows, per_pass, threads);
    ASSERT_EQ(other.size(), whole.size());
    for (const auto& [place, row] : whole)
      ASSERT_EQ(bits(other.at(place)), bits(row))
          << std::get<1>(place) << ", " << per_pass << " windows a pass, " << threads << " threads";
  }
}

TEST_F(ErrorTablesLaw, TheReferenceAsASchemeHasNoErrorAnywhere) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  for (const Compute compute : {Compute::bf16, Compute::f32, Compute::bf16_serve})
    for (const auto& [place, row] :
         measure(checkpoint, {"BF16"}, random_windows({70, 40}, 600, 8), 2, 2, compute)) {
      EXPECT_EQ(row.sums.errors().error2(), 0.0) << row.site;
      EXPECT_EQ(row.divergence.sum(), 0.0) << row.site;
      EXPECT_GT(row.sums.errors().count() + row.divergence.count(), 0) << row.site;
    }
}

TEST_F(ErrorTablesLaw, TotalsAreTheSumOfTheirParts) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const Rows rows = measure(checkpoint, {"W4A8+KVINT8", "NVFP4"}, random_windows({70}, 600, 9), 1, 2);
  int totals = 0;
  for (const auto& [place, total] : rows) {
    if (total.site != kAllSites) continue;
    ++totals;
    EXPECT_EQ(total.layer, -1);
    EXPECT_FALSE(total.sums.residual_error());
    double error2 = 0, reference2 = 0, divergence = 0;
    std::int64_t count = 0, queries = 0, saturated = 0;
    std::uint64_t histogram = 0;
    for (const auto& [other, part] : rows) {
      if (part.site == kAllSites || part.walker != total.walker || part.kind != total.kind ||
          part.scope != total.scope)
        continue;
      error2 += part.sums.errors().error2();
      reference2 += part.sums.errors().reference2();
      count += part.sums.errors().count();
      saturated += part.sums.saturated();
      divergence += part.divergence.sum();
      queries += part.divergence.count();
      histogram += part.sums.errors().rows().count() + part.divergence.rows().count();
    }
    EXPECT_EQ(total.sums.errors().count(), count);
    EXPECT_EQ(total.divergence.count(), queries);
    EXPECT_EQ(total.sums.saturated(), saturated);
    EXPECT_EQ(total.sums.errors().rows().count() + total.divergence.rows().count(), histogram);
    EXPECT_NEAR(total.sums.errors().error2(), error2, 1e-12 * error2);
    EXPECT_NEAR(total.sums.errors().reference2(), reference2, 1e-12 * reference2);
    EXPECT_NEAR(total.divergence.sum(), divergence, 1e-12 * divergence);
  }
  EXPECT_EQ(totals, 2 * (1 + 3 * 6));  // weights have one scope, six kinds three
}

TEST_F(ErrorTablesLaw, BeforeAnythingIsInheritedLocalIsTotal) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const Rows rows = measure(checkpoint, kMixed, random_windows({150, 40}, 600, 10), 2, 2);
  for (int scheme = 1; scheme <= static_cast<int>(kMixed.size()); ++scheme)
    for (const char* linear : {"q_proj", "k_proj", "v_proj"})
      for (const TensorKind kind : {TensorKind::activation, TensorKind::output}) {
        const std::string site = std::string("model.layers.0.self_attn.") + linear +
                                 (kind == TensorKind::output ? " output" : " input");
        const auto& local = rows.at({scheme, site, kind, ErrorScope::local}).sums.errors();
        EXPECT_EQ(local, rows.at({scheme, site, kind, ErrorScope::total}).sums.errors()) << site;
        EXPECT_EQ(rows.at({scheme, site, kind, ErrorScope::inherited}).sums.errors().error2(), 0.0) << site;
      }
  EXPECT_GT(rows.at({1, "model.layers.0.self_attn.q_proj output", TensorKind::output, ErrorScope::local})
                .sums.errors()
                .error2(),
            0.0);
}

TEST_F(ErrorTablesLaw, TheResidualStreamIsWhatEvalStores) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows({150, 40, 90}, 600, 11);
  const Rows rows = measure(checkpoint, kMixed, windows, 2, 2);
  SweepJob job;
  job.checkpoint = &checkpoint;
  job.walkers.resize(1);
  for (const std::string& scheme : kMixed) job.walkers.push_back({Scheme::parse(scheme), Compute::bf16});
  job.windows = &windows;
  std::vector<WalkerState> states;
  job.sink = [&](const PassResult& pass) { states = *pass.states; };
  SweepPlan plan;
  plan.windows_per_pass = 3;
  run_sweep(job, plan);
  for (std::size_t w = 1; w < job.walkers.size(); ++w)
    for (int layer = 0; layer < 2; ++layer) {
      const SiteError& row = rows.at(
          {static_cast<int>(w), layer_name(layer) + " output", TensorKind::activation, ErrorScope::total});
      EXPECT_EQ(row.sums.errors(), states[w].layers[static_cast<std::size_t>(layer)]);
      EXPECT_DOUBLE_EQ(row.sums.residual_error().value(), row.sums.errors().relative_error().value());
    }
}

TEST_F(ErrorTablesLaw, LocalErrorsNeedNoSchemesPass) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows({90, 40}, 600, 12);
  ErrorSelection local = ErrorSelection::everything();
  local.scopes = {true, false, false};
  EXPECT_FALSE(local.needs_schemes());
  const Rows all = measure(checkpoint, kMixed, windows, 2, 2);
  const Rows some = measure(checkpoint, kMixed, windows, 1, 1, Compute::bf16, local);
  std::size_t count = 0;
  for (const auto& [place, row] : all) {
    if (std::get<3>(place) != ErrorScope::local) continue;
    ++count;
    EXPECT_EQ(bits(some.at(place)), bits(row)) << row.site;
  }
  EXPECT_EQ(some.size(), count);
}

// ---- Against plain double arithmetic

struct Matrix {
  std::vector<float> values;
  std::int64_t rows = 0, cols = 0;
};

double relative(const std::vector<double>& y, const float* x) {
  double error2 = 0, size2 = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    error2 += (y[i] - x[i]) * (y[i] - x[i]);
    size2 += double{x[i]} * double{x[i]};
  }
  return std::sqrt(error2 / size2);
}

// What the hooks show of one window, by walker: the ground of the naive tables.
struct Shown {
  LayerTensors tensors;
  Shown(const Checkpoint& checkpoint, const std::vector<Walker>& walkers, const EvalWindow& window, int layer)
      : tensors(checkpoint.config(), static_cast<int>(walkers.size()), all(),
                static_cast<std::int64_t>(window.ids.size())) {
    const auto length = static_cast<std::int64_t>(window.ids.size());
    Forward forward(checkpoint, walkers, {length, length});
    tensors.start(0, {length});
    forward.set_hook([&](const SiteView& view) {
      if (view.layer == layer) tensors.record(view);
    });
    forward.start({{0, window.ids}});
    for (int l = 0; l <= layer; ++l) forward.run_layer(l);
  }
  static LayerSlots all() {
    LayerSlots slots;
    slots.fill(true);
    return slots;
  }
};

TEST_F(ErrorTablesLaw, EveryScopeOfALinearIsWhatItSays) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows({140}, 600, 13);
  const std::vector<std::string> schemes = {"w=int4:g32,a=int8:token", "w=fp8_e4m3:channel", "a=mxfp4"};
  const Rows rows = measure(checkpoint, schemes, windows, 1, 2, Compute::f32);
  std::vector<Walker> walkers = {{std::nullopt, Compute::f32}};
  for (const auto& scheme : schemes) walkers.push_back({Scheme::parse(scheme), Compute::f32});
  const int layer = 1;
  const Shown shown(checkpoint, walkers, windows[0], layer);
  for (const LinearId id : kLayerLinears) {
    const std::string module = linear_name(layer, id);
    const LinearShape shape = linear_shape(checkpoint.config(), id);
    std::vector<float> w(static_cast<std::size_t>(shape.out * shape.in)), wq(w.size());
    checkpoint.read(module + ".weight", 0, shape.out, w.data());
    for (int scheme = 1; scheme < static_cast<int>(walkers.size()); ++scheme) {
      const LinearChoice choice = walkers[static_cast<std::size_t>(scheme)].scheme->linear(module);
      wq = w;
      if (!choice.weight.is_reference())
        quantize_dequantize(choice.weight, shape.out, shape.in, w.data(), wq.data(), nullptr, nullptr);
      const auto naive = [&](int source, bool quantized) {
        const float* from = shown.tensors.rows(input_slot(id), source, 0);
        std::vector<float> x(from, from + 140 * shape.in);
        if (quantized && !choice.activation.is_reference())
          quantize_tokens(choice.activation, 140, shape.in, x.data(), x.data(), nullptr, nullptr);
        std::vector<double> y;
        for (std::int64_t t = 0; t < 140; ++t)
          for (std::int64_t o = 0; o < shape.out; ++o) {
            double sum = 0;
            for (std::int64_t i = 0; i < shape.in; ++i)
              sum += double{x[static_cast<std::size_t>(t * shape.in + i)]} *
                     double{(quantized ? wq : w)[static_cast<std::size_t>(o * shape.in + i)]};
            y.push_back(sum);
          }
        return std::pair{y, x};
      };
      const float* y0 = shown.tensors.rows(output_slot(id), 0, 0);
      const float* x0 = shown.tensors.rows(input_slot(id), 0, 0);
      const struct {
        ErrorScope scope;
        int source;
        bool quantized;
      } scopes[] = {{ErrorScope::local, 0, true},
                    {ErrorScope::inherited, scheme, false},
                    {ErrorScope::total, scheme, true}};
      for (const auto& s : scopes) {
        const auto& [y, x] = naive(s.source, s.quantized);
        const auto got =
            rows.at({scheme, module + " output", TensorKind::output, s.scope}).sums.errors().relative_error();
        const double want = relative(y, y0);
        EXPECT_TRUE(std::abs(*got - want) <= 1e-5 * want + 1e-6)
            << module << " output " << name_of(s.scope) << " " << scheme << ": " << *got << " for " << want;
        const auto input = rows.at({scheme, module + " input", TensorKind::activation, s.scope})
                               .sums.errors()
                               .relative_error();
        EXPECT_NEAR(*input, relative({x.begin(), x.end()}, x0), 1e-12)
            << module << " input " << name_of(s.scope);
      }
      EXPECT_NEAR(*rows.at({scheme, module + " weight", TensorKind::weight, ErrorScope::local})
                       .sums.errors()
                       .relative_error(),
                  relative({wq.begin(), wq.end()}, w.data()), 1e-12);
    }
  }
}

TEST_F(ErrorTablesLaw, EveryScopeOfAttentionIsWhatItSays) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const ModelConfig& c = checkpoint.config();
  const auto windows = random_windows({100}, 600, 14);
  const std::vector<std::string> schemes = {"w=int4:g32,kv=int8:token", "k=int4:g8,v=fp8_e4m3:tensor"};
  const Rows rows = measure(checkpoint, schemes, windows, 1, 2, Compute::f32);
  std::vector<Walker> walkers = {{std::nullopt, Compute::f32}};
  for (const auto& scheme : schemes) walkers.push_back({Scheme::parse(scheme), Compute::f32});
  const Shown shown(checkpoint, walkers, windows[0], 1);
  const std::int64_t tokens = 100, dim = c.head_dim, group = c.heads / c.kv_heads;
  for (int scheme = 1; scheme <= 2; ++scheme) {
    const KvChoice choice = walkers[static_cast<std::size_t>(scheme)].scheme->cache(1);
    const struct {
      ErrorScope scope;
      int source;
      bool quantized;
    } scopes[] = {{ErrorScope::local, 0, true},
                  {ErrorScope::inherited, scheme, false},
                  {ErrorScope::total, scheme, true}};
    for (const auto& s : scopes) {
      std::vector<double> out(static_cast<std::size_t>(tokens * query_width(c)));
      std::vector<double> keys(static_cast<std::size_t>(tokens * kv_width(c))), values(keys.size());
      double kl_sum = 0;
      for (std::int64_t head = 0; head < c.kv_heads; ++head) {
        const auto cached = [&](LayerSlot slot, int source, const QuantSpec& spec, bool quantized) {
          std::vector<float> x;
          for (std::int64_t t = 0; t < tokens; ++t) {
            const float* from = shown.tensors.rows(slot, source, 0) + t * kv_width(c) + head * dim;
            x.insert(x.end(), from, from + dim);
          }
          if (quantized) quantize_tokens(spec, tokens, dim, x.data(), x.data(), nullptr, nullptr);
          return x;
        };
        const auto side = [&](int source, const std::vector<float>& k, const std::vector<float>& v) {
          AttentionInput in;
          in.tokens = tokens;
          in.group = group;
          in.head_dim = dim;
          in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
          in.q = shown.tensors.rows(LayerSlot::query, source, 0) + head * group * dim;
          in.q_stride = query_width(c);
          in.k = k.data();
          in.v = v.data();
          return in;
        };
        const auto k0 = cached(LayerSlot::key, 0, choice.key, false);
        const auto v0 = cached(LayerSlot::value, 0, choice.value, false);
        const auto k = cached(LayerSlot::key, s.source, choice.key, s.quantized);
        const auto v = cached(LayerSlot::value, s.source, choice.value, s.quantized);
        std::vector<float> y(static_cast<std::size_t>(tokens * group * dim));
        AttentionInput other = side(s.source, k, v);
        other.out = y.data();
        other.out_stride = group * dim;
        attention_ref(other);
        std::vector<double> kl(static_cast<std::size_t>(tokens * group));
        attention_divergence_ref(side(0, k0, v0), other, kl.data());
        for (const double one : kl) kl_sum += one;
        for (std::int64_t t = 0; t < tokens; ++t) {
          for (std::int64_t i = 0; i < group * dim; ++i)
            out[static_cast<std::size_t>(t * query_width(c) + head * group * dim + i)] =
                y[static_cast<std::size_t>(t * group * dim + i)];
          for (std::int64_t i = 0; i < dim; ++i) {
            const auto at = static_cast<std::size_t>(t * kv_width(c) + head * dim + i);
            keys[at] = k[static_cast<std::size_t>(t * dim + i)];
            values[at] = v[static_cast<std::size_t>(t * dim + i)];
          }
        }
      }
      const std::string site = "model.layers.1.self_attn ";
      const auto got = [&](TensorKind kind) {
        return *rows.at({scheme, site + name_of(kind), kind, s.scope}).sums.errors().relative_error();
      };
      const std::string what = site + name_of(s.scope) + " " + schemes[static_cast<std::size_t>(scheme - 1)];
      EXPECT_NEAR(got(TensorKind::key), relative(keys, shown.tensors.rows(LayerSlot::key, 0, 0)), 1e-12)
          << what;
      EXPECT_NEAR(got(TensorKind::value), relative(values, shown.tensors.rows(LayerSlot::value, 0, 0)), 1e-12)
          << what;
      const double want = relative(out, shown.tensors.rows(LayerSlot::o_input, 0, 0));
      EXPECT_TRUE(std::abs(got(TensorKind::attention_output) - want) <= 1e-4 * want + 1e-6)
          << what << ": " << got(TensorKind::attention_output) << " for " << want;
      const double mean = kl_sum / static_cast<double>(tokens * c.heads);
      const double kl = *rows.at({scheme, site + "attention_weights", TensorKind::attention_weights, s.scope})
                             .divergence.mean();
      EXPECT_TRUE(std::abs(kl - mean) <= 1e-3 * mean + 1e-7) << what << ": KL " << kl << " for " << mean;
    }
  }
}

// ---- Tensors made by hand, as a capture would fill them

class MadeTensors : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_model(dir_, {});
    checkpoint_.emplace(Checkpoint::open(dir_));
  }
  // Of q_proj's input, 4 tokens of 32 channels.
  SiteError input_error(const std::vector<float>& x, const char* scheme) {
    ErrorSelection selection;
    selection.scopes[0] = true;
    selection.kinds[static_cast<std::size_t>(TensorKind::activation)] = true;
    selection.site = [](const std::string& site) { return site.ends_with("q_proj input"); };
    ErrorTables tables(checkpoint_->config(), {{std::nullopt, {}}, {Scheme::parse(scheme), {}}}, selection);
    LayerTensors tensors(checkpoint_->config(), 1, tables.slots(), 4);
    tensors.start(0, {4});
    std::copy(x.begin(), x.end(), tensors.rows(LayerSlot::qkv_input, 0, 0));
    tables.measure_layer(0, tensors, *checkpoint_);
    const auto rows = tables.rows();
    EXPECT_EQ(rows.size(), 2U);
    return rows.at(0);
  }
  static std::vector<float> values(float size) {
    std::vector<float> x(128);
    fill_gaussian(3, x.data(), 128);
    for (float& value : x) value *= size;
    return x;
  }
  std::filesystem::path dir_ = fresh_dir("errors_made");
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(MadeTensors, ATokenWithAMassiveActivationIsLeftOutOfTheRest) {
  std::vector<float> x = values(1);
  x[32 + 5] = 3000;  // token 1
  const SiteError row = input_error(x, "a=int8:tensor");
  EXPECT_EQ(row.sums.massive_rows(), 1);
  EXPECT_LT(*row.sums.errors().relative_error(), 0.05);
  EXPECT_EQ(*row.sums.rest_error(), 1.0) << "everything else was rounded to zero";
  EXPECT_GT(*row.sums.errors().rows().quantile(0.5), 0.97);
  x[32 + 5] = 99;  // large, but no more than 100
  EXPECT_EQ(input_error(x, "a=int8:tensor").sums.massive_rows(), 0);
  x = values(1);
  for (float& value : x) value = value < 0 ? -1.0F : 1.0F;
  x[5] = 1000;  // 1000 times the median exactly: inclusive
  EXPECT_EQ(input_error(x, "a=int8:tensor").sums.massive_rows(), 1);
  x[5] = std::nextafter(1000.0F, 0.0F);
  EXPECT_EQ(input_error(x, "a=int8:tensor").sums.massive_rows(), 0);
}

TEST_F(MadeTensors, AnAllZeroReferenceHasNoErrorAndNoKurtosis) {
  const SiteError row = input_error(std::vector<float>(128), "a=int8:token");
  EXPECT_EQ(row.sums.errors().relative_error(), 0.0);
  EXPECT_EQ(row.sums.rest_error(), 0.0);
  EXPECT_FALSE(row.sums.kurtosis());
  EXPECT_FALSE(row.sums.errors().cosine());
}

TEST_F(MadeTensors, SaturatedAndNonFiniteValuesAreCounted) {
  std::vector<float> x = values(1);
  x[7] = 1000;
  x[40] = NAN;
  const SiteError row = input_error(x, "a=fp8_e4m3:token");
  EXPECT_GE(row.sums.errors().nonfinite(), 1);
  EXPECT_FALSE(row.sums.errors().rows().quantile(1.0)) << "the row with NaN is no small error";
  EXPECT_TRUE(row.sums.errors().relative_error());
}

// Weights that are not numbers, from a source of the test's own.
class BrokenWeights final : public TensorSource {
 public:
  explicit BrokenWeights(const Checkpoint& whole) : whole_(whole) {}
  const TensorEntry* find(std::string_view name) const override { return whole_.find(name); }
  void read(std::string_view name, std::int64_t begin, std::int64_t end, float* out) const override {
    whole_.read(name, begin, end, out);
    if (name.find("layers.0.self_attn.q_proj") != std::string_view::npos && begin == 0) out[3] = NAN;
  }
  void release(std::string_view) const override {}

 private:
  const Checkpoint& whole_;
};

TEST_F(MadeTensors, ANanAmongTheWeightsSpoilsItsGroupAndIsCounted) {
  ErrorSelection selection;
  selection.scopes[0] = true;
  selection.kinds[0] = true;
  ErrorTables tables(checkpoint_->config(), {{std::nullopt, {}}, {Scheme::parse("w=int8:channel"), {}}},
                     selection);
  tables.measure_weights(0, BrokenWeights(*checkpoint_));
  const auto rows = tables.rows();
  ASSERT_EQ(rows.at(0).site, "model.layers.0.self_attn.q_proj weight");
  EXPECT_EQ(rows[0].sums.errors().nonfinite(), 32) << "the row's scale is not a number";
  EXPECT_LT(*rows[0].sums.errors().relative_error(), 0.01) << "the others are as they were";
  EXPECT_EQ(rows[1].sums.errors().nonfinite(), 0);
}

// ---- Memory

TEST_F(ErrorTablesLaw, ThePlanCountsTheRecorderAndNamesTheLeast) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows({64, 64, 64, 64, 64, 64, 64, 64}, 600, 15);
  set_thread_count(2);
  ErrorJob job;
  job.checkpoint = &checkpoint;
  job.walkers.resize(1);
  for (const std::string& scheme : kMixed) job.walkers.push_back({Scheme::parse(scheme), Compute::bf16});
  job.windows = &windows;
  job.selection = ErrorSelection::everything();
  const SweepPlan all = plan_errors(job, std::int64_t{1} << 34);
  EXPECT_EQ(all.passes, 1);
  EXPECT_EQ(plan_errors(job, all.least_bytes).windows_per_pass, 1);
  EXPECT_THROW(plan_errors(job, all.least_bytes - 1), Error);
  const ErrorTables tables(checkpoint.config(), job.walkers, job.selection);
  const std::int64_t recorder = LayerTensors::bytes_needed(checkpoint.config(), 7, tables.slots(), 64);
  EXPECT_GE(all.bytes - all.least_bytes, 7 * recorder);
  ErrorJob local = job;
  local.selection.scopes = {true, false, false};
  EXPECT_LT(plan_errors(local, std::int64_t{1} << 34).least_bytes, all.least_bytes);
}

TEST_F(ErrorTablesLaw, AnInterruptEndsTheSweepBetweenLayers) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows({40}, 600, 16);
  ErrorJob job;
  job.checkpoint = &checkpoint;
  job.walkers = {{std::nullopt, {}}, {Scheme::parse("W8A8"), {}}};
  job.windows = &windows;
  job.selection = ErrorSelection::everything();
  int asked = 0;
  job.interrupted = [&] { return ++asked == 4; };
  SweepPlan plan;
  plan.windows_per_pass = 1;
  try {
    measure_errors(job, plan);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::interrupted);
  }
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace quantmap
