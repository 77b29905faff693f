#include <fmt/format.h>

#include <algorithm>

#include "app/evaluate.hpp"
#include "core/error.hpp"
#include "reports/evaluation.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec eval_spec() {
  CommandSpec spec;
  spec.name = "eval";
  spec.usage = "MODEL (--text F | --token-ids F | --tasks T…) --schemes S… [options]";
  spec.does =
      "Perplexity, KL divergence and top-1 agreement of many quantization schemes against the model itself,\n"
      "in one pass over the model; every row with its uncertainty, kept in the database.";
  po::options_description options("Options of eval");
  add_input_options(options);
  add_scheme_options(options, "short names (W4A16, NVFP4+KVFP8, …), w=…,a=…,kv=…, or @recipe.json");
  options.add_options()  //
      ("tasks", po::value<std::vector<std::string>>()->multitoken(),
       "hellaswag, piqa, arc_easy, …, mmlu_SUBJECT, blimp_NAME or FILE.json, with a text or without")  //
      ("items", po::value<std::string>(), "A-B: those items of each task, zero-based, inclusive")      //
      ("data", po::value<std::string>(), "folder with the tasks' files (default: datasets)")           //
      ("protocol", po::value<std::string>(),
       "llama.cpp, gptq, hf or lm-eval: its ctx, scoring, stride, BOS")             //
      ("stride", po::value<std::int64_t>(), "with --protocol hf (default ctx/2)")   //
      ("score", po::value<std::string>(), "all, second-half or hf-weights")         //
      ("noise-floor", "also the distance between the BF16 and the FP32 reference")  //
      ("require", po::value<std::string>(),
       "conditions on every scheme, \"kl<0.01 recovery>0.99\": status 0 met, 4 not met, 5 undecided")  //
      ("resume", "go on with the unfinished run of the same inputs");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap eval datasets/demo --text datasets/demo/text.txt --ctx 512 --schemes W4A16 W8A8 NVFP4\n"
      "  quantmap eval model.gguf --text wiki.test.raw --protocol llama.cpp --windows 8 --schemes "
      "W4A16+KVFP8\n"
      "  quantmap eval model/ --text f.txt --schemes w=int4:g64:asym,a=int8:token,kv=int8:token "
      "@recipe.json\n";
  spec.examples += "  quantmap eval datasets/demo --tasks demo --schemes W4A16 NVFP4\n";
  return spec;
}

// The verdicts, one line each, on stderr: stdout holds the rows. Returns the exit status.
int report_gate(const std::vector<GateRow>& gate) {
  constexpr int kNotMet = 4, kUndecided = 5;
  const auto bound = [](const Number& value) { return value ? fmt::format("{:.6g}", *value) : "none"; };
  GateVerdict all = GateVerdict::pass;
  for (const GateRow& row : gate) {
    const Measured& m = row.measured;
    std::string found = m.undefined;
    if (m.undefined.empty()) {
      found = fmt::format("{:.6g}", m.value);
      if (!m.low && !m.high)
        found += ", too few windows for bounds";
      else if (m.low != m.high)
        found += fmt::format(", one-sided 95 % bounds {} and {}", bound(m.low), bound(m.high));
    }
    tell(fmt::format("quantmap: --require: {}: {} {}: {}\n", gate_verdict_name(row.verdict), row.scheme,
                     row.condition.text, found));
    all = worst(all, row.verdict);
  }
  return all == GateVerdict::fail ? kNotMet : all == GateVerdict::undecided ? kUndecided : 0;
}

}  // namespace

int run_eval(const CommandLine& line) {
  EvaluationRequest request;
  const auto values = parse_command(line, eval_spec(), request.common);
  if (!values) return 0;
  request.command_line = line.text;
  request.input = input_request("eval", *values);
  if (values->count("tasks")) request.tasks.tasks = (*values)["tasks"].as<std::vector<std::string>>();
  for (const char* name : {"items", "data"})
    if (values->count(name)) {
      if (request.tasks.tasks.empty()) fail_usage(fmt::format("--{}", name), "only with --tasks");
      (std::string_view(name) == "items" ? request.tasks.items : request.tasks.data) =
          (*values)[name].as<std::string>();
    }
  if (request.input.text.empty() && request.input.token_ids.empty() && request.tasks.tasks.empty())
    fail_usage("eval", "give one of --text, --token-ids and --tasks");
  const std::vector<std::string> words = scheme_words(*values);
  const auto blank = [](const std::string& word) {
    return word.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
  };
  if (std::all_of(words.begin(), words.end(), blank))
    fail_usage("eval", "no --schemes given (BF16 alone measures the reference)");
  request.schemes = parse_schemes(words);
  const auto text = [&](const char* name) {
    return values->count(name) ? (*values)[name].as<std::string>() : std::string();
  };
  request.input.protocol.protocol = text("protocol");
  if (values->count("stride")) request.input.protocol.stride = (*values)["stride"].as<std::int64_t>();
  if (values->count("score")) request.input.protocol.score = text("score");
  request.noise_floor = values->count("noise-floor") > 0;
  request.resume = values->count("resume") > 0;
  if (values->count("require")) {
    request.require = parse_conditions(text("require"));
    if (std::all_of(request.schemes.begin(), request.schemes.end(), [](const Scheme& scheme) {
          return scheme.spelling() == Scheme::parse("BF16").spelling();
        }))
      fail_usage("--require", "nothing to judge: no scheme but the reference");
  }
  const EvaluationResult result = evaluate(request);
  emit(request.common, write_evaluation(result.rows, request.common.format, output_width(request.common)));
  return report_gate(result.gate);
}

}  // namespace quantmap
