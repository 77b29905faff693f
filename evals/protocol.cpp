#include "evals/protocol.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace quantmap {
namespace {

struct NamedRule {
  std::string_view name;
  ScoreRule rule;
};
constexpr std::array<NamedRule, 3> kScoreRules = {{{"all", ScoreRule::all},
                                                   {"second-half", ScoreRule::second_half},
                                                   {"hf-weights", ScoreRule::hf_weights}}};

struct NamedBos {
  std::string_view name;
  BosRule rule;
};
constexpr std::array<NamedBos, 3> kBosRules = {
    {{"auto", BosRule::automatic}, {"always", BosRule::always}, {"never", BosRule::never}}};

constexpr std::int64_t kDefaultCtx = 2048;

// ctx 0: the model's own limit, 2048 at most.
struct ProtocolRow {
  std::string_view name;
  std::int64_t ctx;
  ScoreRule score;
  BosRule bos;
  Cutting cutting;
  bool bos_every_window;
};
constexpr std::array<ProtocolRow, 4> kProtocols = {{
    {"llama.cpp", 512, ScoreRule::second_half, BosRule::automatic, Cutting::disjoint, true},
    {"gptq", 2048, ScoreRule::all, BosRule::automatic, Cutting::disjoint, false},
    {"hf", 0, ScoreRule::all, BosRule::automatic, Cutting::strided, false},
    {"lm-eval", 0, ScoreRule::all, BosRule::always, Cutting::rolling, false},
}};

std::string number(std::int64_t value) { return std::to_string(value); }

EvalWindow scored_window(std::vector<std::int32_t> ids, ScoreRule rule, std::int64_t first_target) {
  EvalWindow window;
  window.targets.assign(ids.size(), -1);
  const auto length = static_cast<std::int64_t>(ids.size());
  const std::int64_t first = rule == ScoreRule::second_half ? length / 2 + 1 : first_target;
  for (std::int64_t t = first; t < length; ++t)
    window.targets[static_cast<std::size_t>(t - 1)] = ids[static_cast<std::size_t>(t)];
  window.ids = std::move(ids);
  window.weight = static_cast<double>(window.scored());
  return window;
}

std::vector<std::int32_t> slice(std::span<const std::int32_t> ids, std::int64_t begin, std::int64_t end) {
  return {ids.begin() + begin, ids.begin() + end};
}

}  // namespace

const char* score_name(ScoreRule rule) { return kScoreRules[static_cast<std::size_t>(rule)].name.data(); }

const char* bos_name(BosRule rule) { return kBosRules[static_cast<std::size_t>(rule)].name.data(); }

Protocol resolve_protocol(const ProtocolOptions& options, std::int64_t model_limit) {
  Protocol protocol;
  protocol.ctx = std::min(kDefaultCtx, model_limit);
  if (!options.protocol.empty()) {
    const auto row = std::find_if(kProtocols.begin(), kProtocols.end(),
                                  [&](const ProtocolRow& r) { return r.name == options.protocol; });
    if (row == kProtocols.end())
      fail_usage("--protocol",
                 "unknown protocol " + quoted(options.protocol) + " (llama.cpp, gptq, hf or lm-eval)");
    protocol.name = options.protocol;
    if (row->ctx > 0) protocol.ctx = row->ctx;
    protocol.score = row->score;
    protocol.bos = row->bos;
    protocol.cutting = row->cutting;
    protocol.bos_every_window = row->bos_every_window;
  }
  if (options.ctx) {
    if (*options.ctx < 2 || *options.ctx > (std::int64_t{1} << 24))
      fail_usage("--ctx", "a window has 2 to 16777216 tokens, not " + number(*options.ctx));
    protocol.ctx = *options.ctx;
  }
  if (options.score) {
    const auto row = std::find_if(kScoreRules.begin(), kScoreRules.end(),
                                  [&](const NamedRule& r) { return r.name == *options.score; });
    if (row == kScoreRules.end())
      fail_usage("--score", "unknown rule " + quoted(*options.score) + " (all, second-half or hf-weights)");
    protocol.score = row->rule;
  }
  if (options.bos) {
    const auto row = std::find_if(kBosRules.begin(), kBosRules.end(),
                                  [&](const NamedBos& r) { return r.name == *options.bos; });
    if (row == kBosRules.end())
      fail_usage("--bos", "unknown rule " + quoted(*options.bos) + " (auto, always or never)");
    protocol.bos = row->rule;
  }
  if (options.stride) {
    if (protocol.cutting != Cutting::strided)
      fail_usage("--stride", "only --protocol hf has overlapping windows");
    if (*options.stride < 1 || *options.stride > protocol.ctx)
      fail_usage("--stride", "a stride lies between 1 and ctx = " + number(protocol.ctx) + ", not " +
                                 number(*options.stride));
    protocol.stride = *options.stride;
  } else if (protocol.cutting == Cutting::strided) {
    protocol.stride = std::max<std::int64_t>(1, protocol.ctx / 2);
  }
  if (protocol.score == ScoreRule::second_half && protocol.cutting != Cutting::disjoint)
    fail_usage("--score", "second-half needs disjoint windows (protocol " + protocol.name + " has others)");
  if (protocol.cutting == Cutting::rolling && protocol.bos == BosRule::never)
    fail_usage("--bos", "lm-eval scores the first token too: it needs a token before it");
  return protocol;
}

std::int64_t EvalWindow::first_row() const {
  const auto first = std::find_if(targets.begin(), targets.end(), [](std::int32_t t) { return t >= 0; });
  return first - targets.begin();
}

std::int64_t EvalWindow::last_row() const {
  const auto last = std::find_if(targets.rbegin(), targets.rend(), [](std::int32_t t) { return t >= 0; });
  return static_cast<std::int64_t>(targets.size()) - (last - targets.rbegin());
}

std::int64_t EvalWindow::scored() const {
  return std::count_if(targets.begin(), targets.end(), [](std::int32_t t) { return t >= 0; });
}

CutText cut_text(std::span<const std::int32_t> ids, const Protocol& protocol, bool tokenizer_adds_bos,
                 std::optional<std::int32_t> bos, std::optional<std::int32_t> eos,
                 std::string_view text_name) {
  CutText cut;
  const bool wants_bos =
      protocol.bos == BosRule::always || (protocol.bos == BosRule::automatic && tokenizer_adds_bos);
  // lm-eval's rolling windows start from EOS where there is no BOS.
  const std::optional<std::int32_t> start = bos ? bos : protocol.cutting == Cutting::rolling ? eos : bos;
  if (wants_bos && !start) fail_usage("--bos", "the tokenizer has no BOS token to put before the text");
  std::vector<std::int32_t> text;
  if (wants_bos) {
    text.push_back(*start);
    cut.bos_added = true;
  }
  text.insert(text.end(), ids.begin(), ids.end());
  const auto total = static_cast<std::int64_t>(text.size());
  const std::int64_t least = protocol.name == "llama.cpp"            ? 2 * protocol.ctx
                             : protocol.cutting == Cutting::disjoint ? protocol.ctx
                                                                     : 2;
  if (total < least)
    fail_input(
        "text is too short", text_name,
        protocol.name == "llama.cpp" ? "llama.cpp's rule is two windows or more" : "not one whole window",
        number(least) + " tokens or more", number(total));

  switch (protocol.cutting) {
    case Cutting::disjoint:
      for (std::int64_t begin = 0; begin + protocol.ctx <= total; begin += protocol.ctx) {
        std::vector<std::int32_t> window = slice(text, begin, begin + protocol.ctx);
        if (wants_bos && protocol.bos_every_window) window[0] = *start;
        cut.windows.push_back(scored_window(std::move(window), protocol.score, 1));
      }
      cut.dropped_tokens = total % protocol.ctx;
      break;
    case Cutting::strided: {
      std::int64_t scored_until = 0;
      for (std::int64_t begin = 0; scored_until < total; begin += protocol.stride) {
        const std::int64_t end = std::min(begin + protocol.ctx, total);
        const std::int64_t fresh = end - scored_until;
        EvalWindow window = scored_window(slice(text, begin, end), ScoreRule::all,
                                          std::max<std::int64_t>(1, end - begin - fresh));
        if (protocol.score == ScoreRule::hf_weights) window.weight = static_cast<double>(fresh - 1);
        if (window.scored() > 0) cut.windows.push_back(std::move(window));
        scored_until = end;
      }
      break;
    }
    case Cutting::rolling: {
      // text[0] is the start token; text[1 …] are the targets, each once.
      for (std::int64_t scored = 1; scored < total;) {
        const std::int64_t end = std::min(scored + protocol.ctx, total);  // targets [scored, end)
        const std::int64_t begin = std::max<std::int64_t>(0, end - 1 - protocol.ctx);
        EvalWindow window;
        window.ids = slice(text, begin, end - 1);
        window.targets.assign(window.ids.size(), -1);
        for (std::int64_t t = scored; t < end; ++t)
          window.targets[static_cast<std::size_t>(t - 1 - begin)] = text[static_cast<std::size_t>(t)];
        window.weight = static_cast<double>(window.scored());
        cut.windows.push_back(std::move(window));
        scored = end;
      }
      break;
    }
  }
  return cut;
}

std::vector<EvalWindow> windows_of_ids(std::vector<std::vector<std::int32_t>> windows,
                                       const Protocol& protocol) {
  std::vector<EvalWindow> result;
  for (auto& ids : windows) result.push_back(scored_window(std::move(ids), protocol.score, 1));
  return result;
}

}  // namespace quantmap
