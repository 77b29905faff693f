// How a text is cut and what is scored, on texts of a few tokens (faults B41, B49).
#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "window_text.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Cut {
  const char* reason;
  Options options;
  std::int32_t tokens;  // of the text: 0, 1, 2, …
  bool adds_bos;        // the tokenizer's own rule
  std::vector<std::string> windows;
  std::int64_t dropped;
};
const std::vector<Cut>& cuts() {
  static const std::vector<Cut> cases = {
      {"default: every target but a window's first; the short rest is dropped",
       Options{.ctx = 4},
       10,
       false,
       {"0>1 1>2 2>3 3", "4>5 5>6 6>7 7"},
       2},
      {"default: BOS goes before the text and overwrites each window's first token (3, 7)",
       Options{.ctx = 4},
       11,
       true,
       {"B>0 0>1 1>2 2", "B>4 4>5 5>6 6", "B>8 8>9 9>10 10"},
       0},
      {"default: exactly one window", Options{.ctx = 4}, 4, false, {"0>1 1>2 2>3 3"}, 0},
      {"default: BOS counts as a token of the text", Options{.ctx = 4}, 3, true, {"B>0 0>1 1>2 2"}, 0},
      {"--bos never leaves it out although the tokenizer adds it",
       Options{.ctx = 4, .bos = "never"},
       4,
       true,
       {"0>1 1>2 2>3 3"},
       0},
      {"--bos always puts it although the tokenizer does not",
       Options{.ctx = 4, .bos = "always"},
       3,
       false,
       {"B>0 0>1 1>2 2"},
       0},
      {"second half of 8: targets at 5, 6, 7",
       Options{.ctx = 8, .score = "second-half"},
       9,
       false,
       {"0 1 2 3 4>5 5>6 6>7 7"},
       1},
      {"second half of an odd window: targets from 5/2+1",
       Options{.ctx = 5, .score = "second-half"},
       5,
       false,
       {"0 1 2>3 3>4 4"},
       0},
      {"llama.cpp: second half, BOS in every window, two windows or more",
       Options{.protocol = "llama.cpp", .ctx = 6},
       12,
       true,
       {"B 0 1 2>3 3>4 4", "B 6 7 8>9 9>10 10"},
       1},
      {"llama.cpp with a tokenizer that adds no BOS",
       Options{.protocol = "llama.cpp", .ctx = 4},
       8,
       false,
       {"0 1 2>3 3", "4 5 6>7 7"},
       0},
      {"gptq: BOS at the very start only",
       Options{.protocol = "gptq", .ctx = 4},
       8,
       true,
       {"B>0 0>1 1>2 2", "3>4 4>5 5>6 6"},
       1},
      {"hf, stride below ctx: what a window has seen before is not scored again",
       Options{.protocol = "hf", .ctx = 4, .stride = 2},
       7,
       false,
       {"0>1 1>2 2>3 3", "2 3>4 4>5 5", "4 5>6 6"},
       0},
      {"hf, stride = ctx: a window's first token has no predecessor",
       Options{.protocol = "hf", .ctx = 4, .stride = 4},
       6,
       false,
       {"0>1 1>2 2>3 3", "4>5 5"},
       0},
      {"hf: half of ctx is the default stride; BOS at the start only",
       Options{.protocol = "hf", .ctx = 4},
       5,
       true,
       {"B>0 0>1 1>2 2", "1 2>3 3>4 4"},
       0},
      {"hf, stride 1: each later window scores one token",
       Options{.protocol = "hf", .ctx = 3, .stride = 1},
       5,
       false,
       {"0>1 1>2 2", "1 2>3 3", "2 3>4 4"},
       0},
      {"hf: a text shorter than a window is one window",
       Options{.protocol = "hf", .ctx = 8},
       3,
       false,
       {"0>1 1>2 2"},
       0},
      {"lm-eval: every token once, from BOS on; the last window reaches back",
       Options{.protocol = "lm-eval", .ctx = 4},
       10,
       false,
       {"B>0 0>1 1>2 2>3", "3>4 4>5 5>6 6>7", "5 6 7>8 8>9"},
       0},
      {"lm-eval: whole windows need no reaching back",
       Options{.protocol = "lm-eval", .ctx = 4},
       8,
       false,
       {"B>0 0>1 1>2 2>3", "3>4 4>5 5>6 6>7"},
       0},
      {"lm-eval: a short text is one window",
       Options{.protocol = "lm-eval", .ctx = 8},
       3,
       false,
       {"B>0 0>1 1>2"},
       0},
      {"lm-eval: one BOS, although the tokenizer adds one too (fault B41)",
       Options{.protocol = "lm-eval", .ctx = 4},
       2,
       true,
       {"B>0 0>1"},
       0},
  };
  return cases;
}

TEST(Cutting, FollowsEachConvention) {
  for (const Cut& c : cuts()) {
    const Protocol protocol = resolve_protocol(c.options, 4096);
    const CutText cut = cut_text(counting(c.tokens), protocol, c.adds_bos, kBos, kEos, "text");
    std::vector<std::string> want = c.windows;
    EXPECT_EQ(window_texts(cut.windows), want) << c.reason;
    EXPECT_EQ(cut.dropped_tokens, c.dropped) << c.reason;
    EXPECT_EQ(cut.bos_added, c.windows[0][0] == 'B') << c.reason;
    for (const EvalWindow& window : cut.windows) {
      EXPECT_EQ(window.weight, static_cast<double>(window.scored())) << c.reason;
      EXPECT_EQ(window.last_row() - window.first_row(), window.scored()) << c.reason << ": rows in one run";
    }
  }
}

// Fault B41: BOS is context; nothing is ever scored on it.
TEST(Cutting, BosIsNeverATargetAndOnlyEverFirst) {
  for (const Cut& c : cuts()) {
    const CutText cut =
        cut_text(counting(c.tokens), resolve_protocol(c.options, 4096), c.adds_bos, kBos, kEos, "text");
    for (const EvalWindow& window : cut.windows)
      for (std::size_t i = 0; i < window.ids.size(); ++i) {
        EXPECT_NE(window.targets[i], kBos) << c.reason;
        EXPECT_TRUE(i == 0 || window.ids[i] != kBos) << c.reason;
      }
  }
}

TEST(Cutting, OfRealLengthsScoresWhatEachToolSays) {
  const auto scored = [](const Options& o, std::int32_t tokens, bool bos) {
    std::int64_t sum = 0;
    for (const EvalWindow& w :
         cut_text(counting(tokens), resolve_protocol(o, 4096), bos, 1 << 20, {}, "text").windows)
      sum += w.scored();
    return sum;
  };
  EXPECT_EQ(scored(Options{.protocol = "llama.cpp"}, 3 * 512, false), 3 * 255);  // 255 targets of each 512
  EXPECT_EQ(scored(Options{.protocol = "gptq"}, 5 * 2048 + 100, false), 5 * 2047);
  EXPECT_EQ(scored({}, 5 * 2048 + 100, false), 5 * 2047);
  EXPECT_EQ(scored(Options{.protocol = "hf", .stride = 512}, 10000, false), 9999);  // all but the first
  EXPECT_EQ(scored(Options{.protocol = "lm-eval"}, 10000, false), 10000);
}

// Over many lengths, contexts and strides: hf scores each token but the first once, lm-eval each token once,
// never with less context than the rule gives.
TEST(Cutting, StridedAndRollingScoreEveryTokenOnce) {
  for (const char* protocol : {"hf", "lm-eval"})
    for (std::int64_t ctx = 2; ctx <= 9; ++ctx)
      for (std::int64_t stride = 1; stride <= (protocol == std::string("hf") ? ctx : 1); ++stride)
        for (std::int32_t tokens = 2; tokens <= 30; ++tokens) {
          Options o = Options{.protocol = protocol, .ctx = ctx};
          const bool hf = o.protocol == "hf";
          if (hf) o.stride = stride;
          const CutText cut = cut_text(counting(tokens), resolve_protocol(o, 64), false, kBos, kEos, "text");
          std::multiset<std::int32_t> targets;
          for (const EvalWindow& w : cut.windows) {
            EXPECT_LE(static_cast<std::int64_t>(w.ids.size()), ctx);
            for (std::size_t i = 0; i < w.ids.size(); ++i) {
              if (w.targets[i] < 0) continue;
              targets.insert(w.targets[i]);
              EXPECT_EQ(w.targets[i], w.ids[i] == kBos ? 0 : w.ids[i] + 1) << "a target follows its token";
            }
            if (!hf && cut.windows.size() > 1) {
              EXPECT_EQ(static_cast<std::int64_t>(w.ids.size()), ctx)
                  << "full windows, the last one reaching back";
            }
          }
          std::multiset<std::int32_t> want;
          // With stride = ctx a window's first token has no predecessor in it.
          for (std::int32_t t = hf ? 1 : 0; t < tokens; ++t)
            if (!hf || stride < ctx || t % ctx != 0) want.insert(t);
          EXPECT_EQ(targets, want) << protocol << ", ctx " << ctx << ", stride " << stride << ", " << tokens;
        }
}

TEST(Cutting, HfWeightsAreTheNewTokensLessOne) {
  const Protocol protocol =
      resolve_protocol(Options{.protocol = "hf", .ctx = 4, .stride = 2, .score = "hf-weights"}, 64);
  const CutText cut = cut_text(counting(7), protocol, false, {}, {}, "text");
  ASSERT_EQ(cut.windows.size(), 3U);
  EXPECT_EQ(cut.windows[0].weight, 3.0);  // 4 new, 3 scored
  EXPECT_EQ(cut.windows[1].weight, 1.0);  // 2 new, 2 scored
  EXPECT_EQ(cut.windows[2].weight, 0.0);  // 1 new: transformers' code gives it no weight at all
  EXPECT_EQ(cut.windows[2].scored(), 1);
}

TEST(Cutting, LmEvalStartsFromEosWhereThereIsNoBos) {
  const Protocol protocol = resolve_protocol(Options{.protocol = "lm-eval", .ctx = 4}, 64);
  EXPECT_EQ(window_texts(cut_text(counting(2), protocol, false, {}, kEos, "text").windows),
            std::vector<std::string>{"E>0 0>1"});
}

struct Refusal {
  const char* reason;
  Options options;
  std::int32_t tokens;
  std::optional<std::int32_t> bos, eos;
  ErrorKind kind;
  std::vector<std::string> parts;
};
TEST(Cutting, RefusesWhatCannotBeCut) {
  const std::vector<Refusal> cases = {
      {"one token short of a window", Options{.ctx = 8}, 7, {}, {}, ErrorKind::input, {"some.txt", "8", "7"}},
      {"nothing", Options{.ctx = 8}, 0, {}, {}, ErrorKind::input, {"some.txt", "8", "0"}},
      {"llama.cpp wants two windows",
       Options{.protocol = "llama.cpp", .ctx = 8},
       15,
       {},
       {},
       ErrorKind::input,
       {"some.txt", "two windows", "16", "15"}},
      {"nothing to predict",
       Options{.protocol = "hf", .ctx = 8},
       1,
       {},
       {},
       ErrorKind::input,
       {"some.txt", "2", "1"}},
      {"no BOS to put", Options{.ctx = 8, .bos = "always"}, 20, {}, kEos, ErrorKind::usage, {"--bos", "BOS"}},
      {"neither BOS nor EOS",
       Options{.protocol = "lm-eval", .ctx = 8},
       20,
       {},
       {},
       ErrorKind::usage,
       {"--bos", "BOS"}},
  };
  for (const Refusal& c : cases) {
    try {
      cut_text(counting(c.tokens), resolve_protocol(c.options, 64), false, c.bos, c.eos, "some.txt");
      ADD_FAILURE() << c.reason << ": not refused";
    } catch (const Error& error) {
      const std::string line = error.what();
      EXPECT_EQ(error.kind(), c.kind) << c.reason;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      for (const std::string& part : c.parts)
        EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
    }
  }
}

// Token ids given as windows: the rule of scoring applies, BOS is not added.
TEST(Cutting, GivenWindowsAreScoredAsTheyAre) {
  const auto texts = [](const Options& o) {
    return window_texts(windows_of_ids({counting(4), counting(4, 10)}, resolve_protocol(o, 64)));
  };
  EXPECT_EQ(texts({}), (std::vector<std::string>{"0>1 1>2 2>3 3", "10>11 11>12 12>13 13"}));
  EXPECT_EQ(texts(Options{.score = "second-half"}),
            (std::vector<std::string>{"0 1 2>3 3", "10 11 12>13 13"}));
  EXPECT_EQ(texts(Options{.bos = "always"}),
            (std::vector<std::string>{"0>1 1>2 2>3 3", "10>11 11>12 12>13 13"}));
}

}  // namespace
}  // namespace quantmap
