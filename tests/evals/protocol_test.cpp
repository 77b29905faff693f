// What the options of a protocol resolve to, and which are refused.
#include "evals/protocol.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "window_text.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Row {
  const char* reason;
  Options options;
  std::int64_t model_limit;
  std::int64_t ctx, stride;
  const char* score;
  const char* bos;
  Cutting cutting;
  bool bos_every_window;
};
TEST(Protocol, RowsOfDefaultsAndOverrides) {
  const Row rows[] = {
      {"own default", {}, 131072, 2048, 0, "all", "auto", Cutting::disjoint, true},
      {"a model made for less", {}, 512, 512, 0, "all", "auto", Cutting::disjoint, true},
      {"llama.cpp",
       {.protocol = "llama.cpp"},
       131072,
       512,
       0,
       "second-half",
       "auto",
       Cutting::disjoint,
       true},
      {"gptq", {.protocol = "gptq"}, 131072, 2048, 0, "all", "auto", Cutting::disjoint, false},
      {"hf", {.protocol = "hf"}, 1024, 1024, 512, "all", "auto", Cutting::strided, false},
      {"lm-eval", {.protocol = "lm-eval"}, 1024, 1024, 0, "all", "always", Cutting::rolling, false},
      {"an option wins over the protocol",
       {.protocol = "llama.cpp", .ctx = 256, .score = "all", .bos = "never"},
       131072,
       256,
       0,
       "all",
       "never",
       Cutting::disjoint,
       true},
      {"a stride of one's own",
       {.protocol = "hf", .ctx = 100, .stride = 100},
       131072,
       100,
       100,
       "all",
       "auto",
       Cutting::strided,
       false},
      {"the stride follows ctx",
       {.protocol = "hf", .ctx = 101},
       131072,
       101,
       50,
       "all",
       "auto",
       Cutting::strided,
       false},
      {"transformers' weights",
       {.protocol = "hf", .score = "hf-weights"},
       1024,
       1024,
       512,
       "hf-weights",
       "auto",
       Cutting::strided,
       false},
  };
  for (const Row& row : rows) {
    const Protocol p = resolve_protocol(row.options, row.model_limit);
    EXPECT_EQ(p.name, row.options.protocol) << row.reason;
    EXPECT_EQ(p.ctx, row.ctx) << row.reason;
    EXPECT_EQ(p.stride, row.stride) << row.reason;
    EXPECT_STREQ(score_name(p.score), row.score) << row.reason;
    EXPECT_STREQ(bos_name(p.bos), row.bos) << row.reason;
    EXPECT_EQ(p.cutting, row.cutting) << row.reason;
    if (p.cutting == Cutting::disjoint) {
      EXPECT_EQ(p.bos_every_window, row.bos_every_window) << row.reason;
    }
  }
}

struct Refusal {
  Options options;
  std::vector<std::string> parts;
};
TEST(Protocol, RefusesWhatDoesNotFit) {
  const Refusal cases[] = {
      {{.protocol = "llamacpp"}, {"--protocol", "llamacpp", "llama.cpp"}},
      {{.protocol = "a\nb"}, {"--protocol", "a\\x0Ab"}},
      {{.ctx = 1}, {"--ctx", "1"}},
      {{.ctx = -5}, {"--ctx", "-5"}},
      {{.ctx = std::int64_t{1} << 40}, {"--ctx"}},
      {{.score = "half"}, {"--score", "half", "second-half"}},
      {{.bos = "yes"}, {"--bos", "yes", "always"}},
      {{.stride = 4}, {"--stride", "hf"}},
      {{.protocol = "llama.cpp", .stride = 4}, {"--stride", "hf"}},
      {{.protocol = "hf", .ctx = 8, .stride = 0}, {"--stride", "8", "0"}},
      {{.protocol = "hf", .ctx = 8, .stride = 9}, {"--stride", "8", "9"}},
      {{.protocol = "hf", .score = "second-half"}, {"--score", "second-half", "hf"}},
      {{.protocol = "lm-eval", .score = "second-half"}, {"--score", "second-half", "lm-eval"}},
      {{.protocol = "lm-eval", .bos = "never"}, {"--bos", "lm-eval"}},
  };
  for (const Refusal& c : cases) {
    try {
      resolve_protocol(c.options, 2048);
      ADD_FAILURE() << c.parts[0] << " was not refused";
    } catch (const Error& error) {
      const std::string line = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::usage) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      for (const std::string& part : c.parts)
        EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
    }
  }
}

}  // namespace
}  // namespace quantmap
