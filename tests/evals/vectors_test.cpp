// Golden vectors: what metrics.json expects, computed there in double by an independent implementation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "evals/scores.hpp"
#include "kernels/difference/difference.hpp"
#include "measure/error_sums.hpp"
#include "support/paths.hpp"
#include "window_text.hpp"

namespace quantmap {
namespace {

using namespace testing;
using nlohmann::json;

std::vector<float> floats(const std::string& hex) {
  std::vector<float> values;
  for (std::size_t at = 0; at + 8 <= hex.size(); at += 8)
    values.push_back(
        std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(hex.substr(at, 8), nullptr, 16))));
  return values;
}

std::int64_t checked = 0;

// Relative to what is expected; NaN and an empty number fail.
void near(const std::string& what, const Number& got, const json& want, double relative) {
  ++checked;
  const double value = got.value_or(NAN), expected = want.get<double>();
  EXPECT_TRUE(std::abs(value - expected) <= relative * std::abs(expected))
      << what << ": " << value << " instead of " << expected;
}

// At f (n - 1) of the sorted values (formats.md, section 11), without the rule of 50 values beyond.
double percentile(std::vector<double> values, double f) {
  std::sort(values.begin(), values.end());
  const double at = f * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double high = values[std::min(below + 1, values.size() - 1)];
  return values[below] + (high - values[below]) * (at - std::floor(at));
}

enum class Path { fp64, fp32 };

// Every token is a window of its own, so that standard errors over windows are those of independent tokens,
// as llama.cpp takes them.
void check_logits(const json& file, Path path) {
  const auto count = file["vocab"].get<std::int64_t>();
  std::vector<WindowScores> scheme, reference;
  std::vector<double> kl, delta_p;
  for (std::size_t t = 0; t < file["tokens"].size(); ++t) {
    const std::int64_t target = file["tokens"][t];
    const std::vector<float> p = floats(file["base_logits"][t]), q = floats(file["quant_logits"][t]);
    ASSERT_EQ(static_cast<std::int64_t>(p.size()), count);
    const auto score = [&](std::vector<float> logits) {
      if (path == Path::fp64) return compare_ref(logits.data(), count, target, p.data());
      std::vector<float> weights(p.size());
      const ReferenceRow row = reference_row(p.data(), count, target, weights.data());
      return compare(logits.data(), count, target, row, p.data(), weights.data());
    };
    const TokenScore mine = score(q), theirs = score(p);
    for (auto& [windows, token] : {std::pair{&scheme, mine}, {&reference, theirs}}) {
      WindowScores window;
      window.window = static_cast<std::int64_t>(t);
      window.weight = 1;
      window.add(token);
      windows->push_back(window);
    }
    kl.push_back(mine.kl);
    delta_p.push_back(mine.delta_p);
  }
  const ScoreSummary s = summarize(scheme, reference), base = summarize(reference, reference);
  const json& want = file["expect"];
  // The file's own bounds: 1e-9 in double, 1e-5 where logits pass through FP32.
  const double bound = path == Path::fp64 ? 1e-9 : 1e-5;
  const double stored = bound + 1e-7;  // percentiles are of tokens kept in FP32: half an ulp, 6e-8
  near("ppl", s.ppl, want["ppl"], bound);
  near("ppl_base", base.ppl, want["ppl_base"], bound);
  near("ppl_unc, tokens", s.ppl_stderr_iid, want["ppl_unc"], bound);
  near("ppl_unc, windows of one token", s.ppl_stderr, want["ppl_unc"], bound);
  near("ppl_base_unc", base.ppl_stderr_iid, want["ppl_base_unc"], bound);
  near("ln_ratio", s.ln_ppl_ratio, want["ln_ratio"], bound);
  near("ln_ratio_unc", s.ln_ppl_ratio_stderr, want["ln_ratio_unc"], bound);
  near("ppl_ratio", std::exp(s.ln_ppl_ratio.value_or(NAN)), want["ppl_ratio"], bound);
  near("ppl_ratio_unc", std::exp(s.ln_ppl_ratio.value_or(NAN)) * s.ln_ppl_ratio_stderr.value_or(NAN),
       want["ppl_ratio_unc"], bound);
  near("ppl_diff", s.ppl.value_or(NAN) - base.ppl.value_or(NAN), want["ppl_diff"],
       bound * want["ppl"].get<double>() / want["ppl_diff"].get<double>());
  near("kl_mean", s.kl_mean, want["kl_mean"], bound);
  near("kl_unc, tokens", s.kl_stderr_iid, want["kl_unc"], bound);
  near("kl_unc, windows of one token", s.kl_stderr, want["kl_unc"], bound);
  near("kl_max", s.kl_max, want["kl_max"], bound);
  near("kl_median", s.kl_p50, want["kl_median"], stored);
  near("kl_min", *std::min_element(kl.begin(), kl.end()), want["kl_min"], bound);
  for (const auto& [f, value] : want["kl_pct"].items())
    near("kl_pct " + f, percentile(kl, std::stod(f)), value, bound);
  near("dp_mean", s.delta_p_mean, want["dp_mean"], bound);
  near("dp_rms", s.delta_p_rms, want["dp_rms"], bound);
  for (const auto& [f, value] : want["dp_pct"].items())
    near("dp_pct " + f, percentile(delta_p, std::stod(f)), value, bound);
  near("same_top", s.top1_agreement, want["same_top"], bound);
  near("same_top_unc", s.top1_stderr, want["same_top_unc"], bound);
  EXPECT_FALSE(s.kl_p90 || s.kl_p99 || s.kl_p999) << "12.8 of 128 tokens lie beyond the 90th percentile";
}

void check_tensor(const json& file) {
  const std::vector<float> x = floats(file["x"]), y = floats(file["y"]);
  const json& want = file["expect"];
  const auto fast = [](const float* a, const float* b, std::int64_t count) {
    return row_difference(a, b, count);
  };
  for (RowDifference (*const difference)(const float*, const float*, std::int64_t) :
       {+fast, row_difference_ref}) {
    // Whole, and merged from rows of another length each.
    for (const std::size_t cut : {x.size(), std::size_t{1}, std::size_t{37}}) {
      ErrorSums sums;
      for (std::size_t begin = 0; begin < x.size(); begin += cut) {
        const auto count = static_cast<std::int64_t>(std::min(cut, x.size() - begin));
        const RowDifference d = difference(x.data() + begin, y.data() + begin, count);
        ErrorSums part;
        part.add_row(d.error2, d.reference2, d.value2, d.dot, d.max_error, d.amax, d.nonfinite, count);
        sums.merge(part);
      }
      near("rel_frobenius", sums.relative_error(), want["rel_frobenius"], 1e-9);
      near("qsnr_db", sums.sqnr_db(), want["qsnr_db"], 1e-9);
      near("cosine", sums.cosine(), want["cosine"], 1e-9);
      near("max_abs", sums.max_error(), want["max_abs"], 6e-8);  // kept in FP32
      EXPECT_EQ(sums.count(), static_cast<std::int64_t>(x.size()));
      EXPECT_EQ(sums.nonfinite(), 0);
    }
  }
}

// The id of a token is its place in the text; BOS, where it is used, is the text's token 0.
void check_llama_cpp(const json& row) {
  const auto tokens = row["n_tokens"].get<std::int32_t>();
  const Protocol protocol =
      resolve_protocol(Options{.protocol = "llama.cpp", .ctx = row["n_ctx"].get<std::int64_t>()}, 4096);
  const CutText cut = cut_text(counting(tokens - 1, 1), protocol, true, kBos, {}, "text");
  ASSERT_EQ(cut.windows.size(), row["chunks"].get<std::size_t>());
  for (std::size_t w = 0; w < cut.windows.size(); ++w) {
    std::vector<std::int32_t> targets;
    for (const std::int32_t target : cut.windows[w].targets)
      if (target >= 0) targets.push_back(target);
    EXPECT_EQ(targets, row["scored_target_indices"][w].get<std::vector<std::int32_t>>()) << row;
    EXPECT_EQ(cut.windows[w].ids[0] == kBos, row["first_token_replaced_by_bos"].get<bool>());
    ++checked;
  }
}

void check_hf_stride(const json& row) {
  const auto tokens = row["n_tokens"].get<std::int32_t>();
  for (const char* score : {"all", "hf-weights"}) {
    const Protocol protocol = resolve_protocol(Options{.protocol = "hf",
                                                       .ctx = row["max_length"].get<std::int64_t>(),
                                                       .stride = row["stride"].get<std::int64_t>(),
                                                       .score = score},
                                               4096);
    const CutText cut = cut_text(counting(tokens), protocol, false, {}, {}, "text");
    ASSERT_EQ(cut.windows.size(), row["windows"].size()) << row;
    for (std::size_t w = 0; w < cut.windows.size(); ++w) {
      const json& want = row["windows"][w];
      const EvalWindow& got = cut.windows[w];
      std::vector<std::int32_t> targets;
      for (const std::int32_t target : got.targets)
        if (target >= 0) targets.push_back(target);
      EXPECT_EQ(got.ids.front(), want["begin"].get<std::int32_t>());
      EXPECT_EQ(got.ids.back() + 1, want["end"].get<std::int32_t>());
      EXPECT_EQ(targets, want["scored"].get<std::vector<std::int32_t>>()) << row;
      EXPECT_EQ(got.weight, protocol.score == ScoreRule::all ? static_cast<double>(targets.size())
                                                             : want["hf_weight"].get<double>());
      ++checked;
    }
  }
}

void check_rolling(const json& row) {
  const Protocol protocol =
      resolve_protocol(Options{.protocol = "lm-eval", .ctx = row["max_seq_len"].get<std::int64_t>()}, 4096);
  const CutText cut = cut_text(counting(row["n_tokens"]), protocol, false, kBos, {}, "text");
  ASSERT_EQ(cut.windows.size(), row["windows"].size()) << row;
  for (std::size_t w = 0; w < cut.windows.size(); ++w) {
    std::vector<std::int32_t> input, targets;
    for (const json& id : row["windows"][w]["input"])
      input.push_back(id == "prefix" ? kBos : id.get<std::int32_t>());
    for (const std::int32_t target : cut.windows[w].targets)
      if (target >= 0) targets.push_back(target);
    EXPECT_EQ(cut.windows[w].ids, input) << row;
    EXPECT_EQ(targets, row["windows"][w]["targets"].get<std::vector<std::int32_t>>()) << row;
    ++checked;
  }
}

TEST(Vectors, metrics) {
  const auto path = vectors_dir() / "metrics.json";
  QUANTMAP_NEEDS(path);
  const json file = json::parse(std::ifstream(path));
  checked = 0;
  check_logits(file, Path::fp64);
  check_logits(file, Path::fp32);
  check_tensor(file["tensor"]);
  for (const json& row : file["windows"]) {
    const std::string convention = row["convention"];
    if (convention == "llama.cpp")
      check_llama_cpp(row);
    else if (convention == "hf_stride")
      check_hf_stride(row);
    else if (convention == "lm_eval_rolling")
      check_rolling(row);
    else
      ADD_FAILURE() << "unknown convention " << convention;
  }
  std::printf("%lld checked\n", static_cast<long long>(checked));
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace quantmap
