// The command line as a user meets it: the demo model, JSON of the contract, one clear line for each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/make_files.hpp"
#include "core/mapped_file.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using testing::demo_dir;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::run_quantmap;
using testing::RunResult;
using Json = nlohmann::json;

std::vector<std::string> eval_demo(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"eval",      demo_dir().string(),
                                        "--text",    (demo_dir() / "text.txt").string(),
                                        "--ctx",     "128",
                                        "--windows", "2",
                                        "--format",  "json",
                                        "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(CommandLine, EvalPrintsTheJsonOfTheContract) {
  const auto dir = fresh_dir("cli_json");
  const RunResult r = run_quantmap(eval_demo({"--noise-floor", "--schemes", "W4A16 BF16",
                                              "w=bf16,a=bf16,kv=bf16", "NVFP4", "w=int4:g128"}),
                                   dir.string());
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.err, "");
  const Json document = Json::parse(r.out);
  EXPECT_EQ(document["run"], 1);
  for (const char* key : {"model", "tokenizer", "text", "token_ids"})
    EXPECT_EQ(document["fingerprints"][key].get<std::string>().size(), 64U) << key;
  const Json& protocol = document["protocol"];
  EXPECT_EQ(protocol["ctx"], 128);
  EXPECT_EQ(protocol["windows"], 2);
  EXPECT_EQ(protocol["score"], "all");
  EXPECT_EQ(protocol["bos"], "auto");
  EXPECT_EQ(protocol["compute"], "bf16");
  EXPECT_EQ(protocol["first_ids"].size(), 16U);
  EXPECT_EQ(protocol["text_tokens"], 40925);  // datasets/demo/README.md
  // The reference first; a spelling that was there already (W4A16 = w=int4:g128) is not repeated.
  ASSERT_EQ(document["rows"].size(), 3U);
  EXPECT_EQ(document["rows"][0]["scheme"], "BF16");
  EXPECT_EQ(document["rows"][1]["scheme"], "W4A16");
  EXPECT_EQ(document["rows"][2]["scheme"], "NVFP4");
  const Json& reference = document["rows"][0];
  for (const char* key : {"kl_mean", "kl_stderr", "kl_max", "tv_mean", "ln_ppl_ratio", "delta_p_mean"})
    EXPECT_EQ(reference[key], 0.0) << key;
  EXPECT_EQ(reference["top1_agreement"], 1.0);
  EXPECT_TRUE(reference["bpw_quantized"].is_null());
  EXPECT_EQ(reference["bpw_model"], 16.0);
  EXPECT_EQ(reference["kv_bytes_per_token"], 6 * 2 * 2 * 64 * 2);  // layers, k and v, heads, head_dim, bytes
  const Json& w4 = document["rows"][1];
  EXPECT_EQ(w4["spec"], "w=int4:g128:full:sbf16,a=bf16,kv=bf16");
  EXPECT_EQ(w4["bpw_quantized"], 4.125);
  EXPECT_EQ(w4["tokens_scored"], 2 * 127);
  EXPECT_EQ(w4["status"], "ok");
  EXPECT_GT(w4["kl_mean"].get<double>(), w4["kl_stderr"].get<double>());
  EXPECT_NEAR(std::exp(w4["nll"].get<double>()), w4["ppl"].get<double>(), 1e-9);
  EXPECT_NEAR(w4["nll"].get<double>() - reference["nll"].get<double>(), w4["ln_ppl_ratio"].get<double>(),
              1e-12);
  EXPECT_TRUE(w4["kl_p99"].is_null());  // fewer than 50 tokens beyond it
  EXPECT_FALSE(w4["kl_p50"].is_null());
  EXPECT_TRUE(document["noise_floor"].is_object());
  EXPECT_LT(document["noise_floor"]["kl_mean"].get<double>(), w4["kl_mean"].get<double>() / 10);

  for (const char* format : {"table", "csv", "md", "json"}) {
    const RunResult q = run_quantmap({"query", "latest", "--format", format}, dir.string());
    EXPECT_EQ(q.status, 0) << q.err;
    EXPECT_THAT(q.out, HasSubstr("W4A16")) << format;
  }
  const RunResult sql = run_quantmap(
      {"query", "--format", "json", "--sql", "SELECT COUNT(*) AS n FROM layer_errors"}, dir.string());
  EXPECT_EQ(Json::parse(sql.out)[0]["n"], 4 * 6) << sql.err;
}

TEST(CommandLine, ResumeOfACompleteRunPrintsItsRowsAndWithoutItTheRunIsNew) {
  const auto dir = fresh_dir("cli_resume");
  const RunResult first = run_quantmap(eval_demo({"--schemes", "W8A8"}), dir.string());
  const RunResult again = run_quantmap(eval_demo({"--schemes", "W8A8", "--resume"}), dir.string());
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  const RunResult fresh = run_quantmap(eval_demo({"--schemes", "W8A8"}), dir.string());
  EXPECT_EQ(Json::parse(fresh.out)["run"], 2);
  const RunResult other = run_quantmap(eval_demo({"--schemes", "W8A16", "--resume"}), dir.string());
  EXPECT_EQ(Json::parse(other.out)["run"], 3);  // another key (S03)
  const RunResult named =
      run_quantmap(eval_demo({"--schemes", "W8A8", "--protocol", "gptq", "--resume"}), dir.string());
  EXPECT_EQ(Json::parse(named.out)["run"], 4) << "the same windows under another name";
  EXPECT_EQ(Json::parse(named.out)["protocol"]["name"], "gptq");
}

struct Mistake {
  std::vector<std::string> arguments;
  int status;
  std::string line;  // part of the one line
};

TEST(CommandLine, EachMistakeIsOneClearLineAndLeavesNothingBehind) {
  const auto dir = fresh_dir("cli_mistakes");
  const std::string demo = demo_dir().string(), text = (demo_dir() / "text.txt").string();
  testing::write_file(dir / "short.txt", "Too short.");
  testing::write_file(dir / "latin1.txt", "caf\xe9");
  testing::write_file(dir / "ids.json", "[[1,2,3],[4,5,99999]]");
  testing::write_file(dir / "model.gguf", "GGUX");
  std::filesystem::create_directory(dir / "empty");
  const Mistake kMistakes[] = {
      {{}, 2, "usage"},
      {{"evil"}, 2, "unknown command \"evil\""},
      {{"eval"}, 2, "no MODEL given"},
      {{"eval", demo, "--schemes", "W4A16"}, 2, "give one of --text, --token-ids and --tasks"},
      {{"eval", demo, "--text", text}, 2, "no --schemes"},
      {{"eval", demo, "--text", text, "--schemes", "W5A5"}, 2, "W5A5"},
      {{"eval", demo, "--text", text, "--schemes", "w=int8:token"}, 2, "token"},
      {{"eval", demo, "--text", text, "--schemes", "w=int4:gptq"}, 2, "gptq"},
      {{"eval", demo, "--text", text, "--schemes", "FP8"}, 2, "static"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--ctx", "1"}, 2, "--ctx"},
      {{"eval", demo, "--text", text, "--schemes", " "}, 2, "no --schemes"},
      {{"eval", demo, "--text", text, "--schemes", ""}, 2, "--schemes: its value is empty"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--db", ""}, 2, "--db: its value is empty"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--output="}, 2, "--output"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--seed", "-1"}, 2, "--seed: 0 or more"},
      {{"eval", demo, "--text", "latin1.txt", "--schemes", "W8A8"}, 3, "text: latin1.txt: not UTF-8"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--ctx", "many"}, 2, "ctx"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--protocol", "mine"},
       2,
       "llama.cpp, gptq, hf or lm-eval"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--score", "none"}, 2, "second-half"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--bos", "maybe"}, 2, "auto, always or never"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--stride", "4"}, 2, "--stride"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--compute", "fp64"},
       2,
       "bf16, f32 or bf16-serve"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--memory", "1M"}, 2, "the least possible is"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--memory", "lots"}, 2, "lots"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--device", "cuda"}, 2, "not built yet"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--format", "xml"}, 2, "xml"},
      {{"eval", demo, "--text", text, "--schemes", "W8A8", "--wat"}, 2, "wat"},
      {{"eval", demo, "--text", text, "--schemes", std::string("@").append((dir / "none.json").string())},
       3,
       "none.json"},
      {{"eval", (dir / "nowhere").string(), "--text", text, "--schemes", "W8A8"}, 3, "nowhere"},
      {{"eval", (dir / "empty").string(), "--text", text, "--schemes", "W8A8"}, 3, "config.json"},
      {{"eval", (dir / "model.gguf").string(), "--text", text, "--schemes", "W8A8"}, 3, "model.gguf"},
      {{"eval", demo, "--text", (dir / "no.txt").string(), "--schemes", "W8A8"}, 3, "no.txt"},
      {{"eval", demo, "--text", (dir / "short.txt").string(), "--schemes", "W8A8"}, 3, "short.txt"},
      {{"eval", demo, "--text", (dir / "latin1.txt").string(), "--schemes", "W8A8"}, 3, "3"},
      {{"eval", demo, "--text", text, "--windows", "999", "--ctx", "512", "--schemes", "W8A8"}, 3, "79"},
      {{"eval", demo, "--token-ids", (dir / "ids.json").string(), "--schemes", "W8A8"},
       3,
       "window 1, position 2"},
      {{"query", "latest"}, 3, "quantmap.db"},
      {{"query", "nonsense"}, 2, "nonsense"},
      {{"query", "latest", "--sql", "SELECT 1"}, 2, "not both"},
  };
  std::vector<std::string> before;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) before.push_back(entry.path());
  for (const Mistake& m : kMistakes) {
    const RunResult r = run_quantmap(m.arguments, dir.string());
    std::string said = "quantmap";
    for (const std::string& word : m.arguments) said.append(" ").append(word);
    EXPECT_EQ(r.status, m.status) << said << "\n" << r.err;
    EXPECT_EQ(r.out, "") << said;
    EXPECT_THAT(r.err, HasSubstr(m.line)) << said;
    if (!m.arguments.empty()) {
      EXPECT_EQ(r.err.rfind("quantmap: error: ", 0), 0U) << said << "\n" << r.err;
      EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << said << "\n" << r.err;
    }
  }
  std::vector<std::string> after;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) after.push_back(entry.path());
  EXPECT_THAT(after, ::testing::UnorderedElementsAreArray(before));
}

TEST(CommandLine, TheModelMayFollowTwoDashes) {
  const auto dir = fresh_dir("cli_dashes");
  const RunResult r =
      run_quantmap({"eval", "--text", (demo_dir() / "text.txt").string(), "--quiet", "--ctx", "32",
                    "--windows", "1", "--schemes", "W8A16", "W8A8", "--", demo_dir().string()},
                   dir.string());
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("W8A8"));
  const RunResult two = run_quantmap({"query", "latest", "--", "runs"}, dir.string());
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err, HasSubstr("too many positional"));
}

// A device or pipe keeps being one, a link stays a link; what cannot be written is known before measuring.
TEST(CommandLine, OutputGoesToWhateverIsNamed) {
  const auto dir = fresh_dir("cli_output");
  const auto link = dir / "link.csv", file = dir / "file.csv";
  testing::write_file(file, "old");
  std::filesystem::create_symlink(file, link);
  EXPECT_EQ(run_quantmap({"formats", "--output", link.string()}, dir.string()).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(read_text_file(file), HasSubstr("nvfp4"));
  const auto full = dir / "full";
  std::filesystem::create_symlink("/dev/full", full);
  const RunResult device = run_quantmap({"formats", "--output", full.string()}, dir.string());
  EXPECT_EQ(device.status, 1);
  EXPECT_THAT(device.err, HasSubstr("No space left"));
  EXPECT_TRUE(std::filesystem::is_symlink(full));
  const auto pipe = dir / "pipe";
  std::filesystem::create_symlink("/dev/stdout", pipe);
  EXPECT_THAT(run_quantmap({"formats", "--output", pipe.string()}, dir.string()).out, HasSubstr("nvfp4"));
  EXPECT_TRUE(std::filesystem::is_symlink(pipe));
  for (const char* bad : {"nowhere/x.json", "."}) {
    const RunResult r = run_quantmap(eval_demo({"--schemes", "W8A8", "--output", bad}), dir.string());
    EXPECT_EQ(r.status, 1) << bad;
    EXPECT_THAT(r.err, HasSubstr("cannot write file")) << bad;
    EXPECT_FALSE(std::filesystem::exists(dir / "quantmap.db"))
        << "nothing is measured for an output that cannot be";
  }
}

RunResult shell(const std::string& script, const std::filesystem::path& dir) {
  return testing::run({"bash", "-c", script, QUANTMAP_BINARY}, dir.string());
}

TEST(CommandLine, ClosedAndFullStreamsAreErrorsNotCrashes) {
  const auto dir = fresh_dir("cli_streams");
  for (const char* command : {"--help", "--version", "formats", "query", "eval --help"})
    for (const char* to : {">&-", ">/dev/full"}) {
      const RunResult r = shell(std::string("$0 ") + command + " " + to, dir);
      EXPECT_EQ(r.status, 1) << command << to;
      EXPECT_THAT(r.err, HasSubstr("cannot write: standard output")) << command << to;
    }
  for (const char* to : {"2>&-", "2>/dev/full"}) {
    EXPECT_EQ(shell(std::string("$0 evil ") + to, dir).status, 2) << to;
    const RunResult r =
        shell("$0 eval " + demo_dir().string() + " --text " + (demo_dir() / "text.txt").string() +
                  " --ctx 32 --windows 1 --schemes W8A8 " + to,
              dir);
    EXPECT_EQ(r.status, 0) << to;
    EXPECT_THAT(r.out, HasSubstr("W8A8")) << to;
  }
}

// As on a full disk: an error with its status, what is stored stays whole and resumes.
TEST(CommandLine, AFileThatMayNotGrowIsAnError) {
  const auto dir = fresh_dir("cli_full");
  const std::string run = "$0 eval " + demo_dir().string() + " --text " + (demo_dir() / "text.txt").string() +
                          " --ctx 32 --windows 40 --memory 17M --schemes W8A8 --quiet --resume";
  const RunResult r = shell("ulimit -f 150; " + run, dir);
  EXPECT_EQ(r.status, 1) << r.err;
  EXPECT_THAT(r.err, ::testing::StartsWith("quantmap: error: results database: "));
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_EQ(shell(run, dir).status, 0);
}

TEST(CommandLine, CtrlCEndsAQueryWithItsStatus) {
  const auto dir = fresh_dir("cli_interrupt");
  run_quantmap(eval_demo({"--schemes", "W8A8"}), dir.string());
  const RunResult r = shell(
      "timeout -s INT 1 $0 query --sql 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
      "SELECT count(*) FROM c'; exit $?",
      dir);
  EXPECT_EQ(r.err, "quantmap: error: interrupted\n");
}

// Where logits are NaN no argmax agrees with another, and a layer without a finite value has no error of 0.
TEST(CommandLine, NotANumberIsNeverANumber) {
  const auto dir = fresh_dir("cli_nan");
  const auto model = dir / "model";
  std::filesystem::create_directory(model);
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(demo_dir() / name, model / name);
  std::string weights = read_text_file(demo_dir() / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  const Json tensors = Json::parse(weights.substr(sizeof header, header));
  const std::uint64_t at = tensors["model.layers.0.self_attn.v_proj.weight"]["data_offsets"][0];
  for (std::uint64_t i = 0; i < 512; ++i)
    weights[sizeof header + header + at + i] = '\xff';  // a row of BF16 NaN
  testing::write_file(model / "model.safetensors", weights);
  const RunResult r =
      run_quantmap({"eval", model.string(), "--text", (demo_dir() / "text.txt").string(), "--ctx", "32",
                    "--windows", "2", "--schemes", "W8A8", "--format", "json", "--quiet"},
                   dir.string());
  ASSERT_EQ(r.status, 0) << r.err;
  const Json document = Json::parse(r.out);
  for (const Json& row : document["rows"]) {
    for (const char* key : {"ppl", "nll", "kl_mean", "kl_max", "tv_mean", "top1_agreement", "top1_stderr",
                            "margin_flips", "delta_p_mean"})
      EXPECT_TRUE(row[key].is_null() || row["scheme"] == "BF16") << key;
    EXPECT_TRUE(row["top1_agreement"].is_null());
    EXPECT_THAT(row["status"].get<std::string>(), HasSubstr("not a number"));
  }
  const RunResult layers = run_quantmap(
      {"query", "--format", "json", "--sql", "SELECT rel_error, row_error_p50, status FROM layer_errors"},
      dir.string());
  for (const Json& row : Json::parse(layers.out)) {
    EXPECT_TRUE(row["rel_error"].is_null()) << row;
    EXPECT_TRUE(row["row_error_p50"].is_null()) << row;
    EXPECT_NE(row["status"], "ok");
  }
  const RunResult outliers = run_quantmap(
      {"query", "--format", "json", "--sql", "SELECT value, status FROM outliers"}, dir.string());
  for (const Json& row : Json::parse(outliers.out)) EXPECT_NE(row["status"], "ok") << row;
}

TEST(CommandLine, HelpFitsAScreenAndEveryCommandHasIts) {
  const RunResult r = run_quantmap({"--help"});
  EXPECT_EQ(r.status, 0);
  EXPECT_LE(std::count(r.out.begin(), r.out.end(), '\n'), 24);
  for (const char* command : {"eval", "query", "formats", "bench", "demo"}) {
    EXPECT_THAT(r.out, HasSubstr(command));
    const RunResult own = run_quantmap({command, "--help"});
    EXPECT_EQ(own.status, 0);
    EXPECT_THAT(own.out, HasSubstr("--db")) << command;
  }
  EXPECT_THAT(run_quantmap({"formats"}).out, HasSubstr("nvfp4"));
}

// product.md, --token-ids: the same windows give the same numbers, without a tokenizer.
TEST(CommandLine, WindowsAsTokenIdsGiveTheNumbersOfTheText) {
  const auto dir = fresh_dir("cli_ids");
  const RunResult text = run_quantmap(eval_demo({"--schemes", "W8A8"}), dir.string());
  const Json from_text = Json::parse(text.out);
  // The ids are not printed whole; a model folder without a tokenizer must do, and the first ids must agree.
  std::filesystem::create_directory(dir / "model");
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(demo_dir() / name, dir / "model" / name);
  Json windows = Json::array();
  for (int w = 0; w < 2; ++w) {
    Json ids = Json::array();
    for (int t = 0; t < 128; ++t) ids.push_back((w * 131 + t * 17) % 4096);
    windows.push_back(ids);
  }
  testing::write_file(dir / "ids.json", windows.dump());
  const RunResult r =
      run_quantmap({"eval", (dir / "model").string(), "--token-ids", (dir / "ids.json").string(), "--schemes",
                    "W8A8", "--format", "json", "--quiet"},
                   dir.string());
  ASSERT_EQ(r.status, 0) << r.err;
  const Json from_ids = Json::parse(r.out);
  EXPECT_EQ(from_ids["protocol"]["windows"], 2);
  EXPECT_EQ(from_ids["protocol"]["first_ids"][1], 17);
  EXPECT_EQ(from_ids["fingerprints"]["model"], from_text["fingerprints"]["model"]);
  EXPECT_EQ(from_ids["rows"][1]["tokens_scored"], 254);
}

}  // namespace
}  // namespace quantmap
