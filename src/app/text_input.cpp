#include "app/text_input.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "app/machine.hpp"
#include "app/version.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "core/parallel.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kFirstIds = 16;

Compute parse_compute(const std::string& name) {
  for (const Compute compute : {Compute::bf16, Compute::f32, Compute::bf16_serve})
    if (name == compute_name(compute)) return compute;
  fail_usage("--compute", "unknown arithmetic " + quoted(name) + " (bf16, f32 or bf16-serve)");
}

// Of what is scored and how it is labelled, short enough for a column.
std::string mask_digest(const std::vector<IdWindow>& windows) {
  constexpr std::size_t kDigits = 12;
  Fingerprint digest;
  for (const IdWindow& window : windows) {
    for (const std::uint8_t flag : window.score) digest.add(flag == 1 ? "1" : "0");
    for (const std::string& label : window.segments) digest.add("/" + label);
    digest.add("\n");
  }
  return digest.hex().substr(0, kDigits);
}

}  // namespace

void add_input_options(po::options_description& options) {
  options.add_options()                                                                                   //
      ("model", po::value<std::string>(), "directory with config.json and safetensors, or a .gguf file")  //
      ("text", po::value<std::string>(), "UTF-8 text, one document")                                      //
      ("token-ids", po::value<std::string>(),
       "JSON array of windows: token ids, or {ids, score, segment}; no text")                        //
      ("ctx", po::value<std::int64_t>(), "tokens in a window (2048, or the model's limit if less)")  //
      ("windows", po::value<std::int64_t>(), "the first N windows only")                             //
      ("bos", po::value<std::string>(), "auto, always or never")                                     //
      ("compute", po::value<std::string>()->default_value("bf16"), "bf16, f32 or bf16-serve");
}

InputRequest input_request(const std::string& command, const po::variables_map& values) {
  InputRequest request;
  const auto text = [&](const char* name) {
    return values.count(name) ? values[name].as<std::string>() : std::string();
  };
  const auto number = [&](const char* name) -> std::optional<std::int64_t> {
    if (!values.count(name)) return std::nullopt;
    return values[name].as<std::int64_t>();
  };
  request.model = text("model");
  request.text = text("text");
  request.token_ids = text("token-ids");
  if (request.model.empty())
    fail_usage(
        command,
        "no MODEL given (a directory or a .gguf file; it comes before the options, since a list such as "
        "--schemes takes every word behind it)");
  if (!request.text.empty() && !request.token_ids.empty())
    fail_usage(command, "give one of --text and --token-ids");
  request.protocol.ctx = number("ctx");
  if (values.count("bos")) request.protocol.bos = text("bos");
  request.windows = number("windows");
  request.compute = parse_compute(text("compute"));
  return request;
}

TextInput read_text_input(const InputRequest& request, const Checkpoint& checkpoint) {
  TextInput input;
  const ModelConfig& config = checkpoint.config();
  const std::int64_t limit = config.max_position > 0 ? config.max_position : std::int64_t{1} << 30;
  if (!request.token_ids.empty()) {
    auto ids = read_token_ids(request.token_ids, config.vocab_size);
    ProtocolOptions options = request.protocol;
    std::size_t longest = 0;
    for (const IdWindow& window : ids) longest = std::max(longest, window.ids.size());
    const auto length = static_cast<std::int64_t>(longest);
    const bool masked = has_masks(ids);
    if (masked && options.score) fail_usage("--score", "the token ids bring their own score");
    if (options.ctx && *options.ctx != length)
      fail_input("token ids", request.token_ids, "windows of another length than --ctx",
                 std::to_string(*options.ctx), std::to_string(length));
    if (!options.protocol.empty() && options.protocol != "llama.cpp" && options.protocol != "gptq")
      fail_usage("--token-ids", "windows given as ids are disjoint: --protocol " + options.protocol +
                                    " would cut the text itself");
    options.ctx = length;
    input.protocol = resolve_protocol(options, limit);
    std::vector<std::int32_t> all;
    for (const IdWindow& window : ids) all.insert(all.end(), window.ids.begin(), window.ids.end());
    input.name = request.token_ids;
    input.text_sha256 = sha256(MappedFile(request.token_ids).text());
    input.ids_sha256 = sha256_of_ids(all);
    input.text_tokens = static_cast<std::int64_t>(all.size());
    if (request.windows && *request.windows > 0 && static_cast<std::size_t>(*request.windows) < ids.size())
      ids.resize(static_cast<std::size_t>(*request.windows));
    input.windows = windows_of_ids(ids, input.protocol);
    if (masked) {
      input.segments = segments_of(ids, input.windows);
      input.score = "mask " + mask_digest(ids);
    }
    input.first_ids.assign(all.begin(),
                           all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kFirstIds)));
  } else {
    input.protocol = resolve_protocol(request.protocol, limit);
    const MappedFile text(request.text);
    const auto tokenizer = load_tokenizer(request.model);
    require_utf8(text.text(), request.text);
    const std::vector<std::int32_t> ids = tokenizer->encode(text.text());
    for (const std::int32_t id : ids)
      if (id >= config.vocab_size)
        fail_input("tokenizer", request.model, "it gives ids that the model does not have",
                   fmt::format("ids below {}", config.vocab_size), std::to_string(id));
    input.name = request.text;
    input.text_sha256 = sha256(text.text());
    input.tokenizer_sha256 = tokenizer->fingerprint();
    input.ids_sha256 = sha256_of_ids(ids);
    input.text_tokens = static_cast<std::int64_t>(ids.size());
    CutText cut =
        cut_text(ids, input.protocol, tokenizer->add_bos(), tokenizer->bos(), tokenizer->eos(), request.text);
    input.windows = std::move(cut.windows);
    input.dropped_tokens = cut.dropped_tokens;
    input.bos_added = cut.bos_added;
    const auto& first = input.windows[0].ids;
    input.first_ids.assign(first.begin(),
                           first.begin() + static_cast<std::ptrdiff_t>(std::min(first.size(), kFirstIds)));
  }
  if (request.windows) {
    if (*request.windows < 1) fail_usage("--windows", "1 or more");
    const auto wanted = static_cast<std::size_t>(*request.windows);
    if (wanted > input.windows.size())
      fail_input("text is too short", input.name, "fewer windows than --windows asks for",
                 std::to_string(wanted), std::to_string(input.windows.size()));
    input.windows.resize(wanted);
  }
  return input;
}

RunRecord begun_run(const std::string& command, const std::string& command_line,
                    const CommonOptions& common) {
  RunRecord run;
  run.command = command;
  run.command_line = command_line;
  run.version = kVersion;
  run.git_revision = kGitRevision;
  run.machine = machine();
  run.device = "cpu";
  run.threads = thread_count();
  run.seed = common.seed;
  run.started_at = now_utc();
  return run;
}

RunRecord describe_run(const std::string& command, const std::string& command_line,
                       const CommonOptions& common, const InputRequest& request, const Checkpoint& checkpoint,
                       const TextInput& input) {
  RunRecord run = begun_run(command, command_line, common);
  run.model = request.model;
  run.model_type = checkpoint.config().model_type;
  run.model_sha256 = checkpoint.fingerprint();
  run.tokenizer_sha256 = input.tokenizer_sha256;
  run.text_sha256 = input.text_sha256;
  run.token_ids_sha256 = input.ids_sha256;
  run.text = input.name;
  run.protocol = input.protocol.name;
  run.ctx = input.protocol.ctx;
  run.stride = input.protocol.stride;
  run.windows = static_cast<std::int64_t>(input.windows.size());
  run.score = input.score.empty() ? score_name(input.protocol.score) : input.score;
  run.bos = bos_name(input.protocol.bos);
  run.compute = compute_name(request.compute);
  run.first_ids = nlohmann::json(input.first_ids).dump();
  run.text_tokens = input.text_tokens;
  run.dropped_tokens = input.dropped_tokens;
  std::vector<std::string> notes(checkpoint.warnings().begin(), checkpoint.warnings().end());
  if (!has_bf16_products() && request.compute != Compute::f32)
    notes.emplace_back("this processor has no BF16 products: BF16 operands are multiplied in FP32");
  const std::int64_t limit = checkpoint.config().max_position;
  if (limit > 0 && run.ctx > limit)
    notes.push_back(fmt::format(
        "windows of {} tokens are longer than the {} positions the model was made for", run.ctx, limit));
  run.notes = nlohmann::json(notes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return run;
}

std::string run_key(const RunRecord& run, const TextInput& input, const std::vector<std::string>& more) {
  Fingerprint key;
  const auto add = [&](std::string_view part) {
    key.add(part);
    key.add("\n");
  };
  for (const std::string* part : {&run.command, &run.model_sha256, &run.tokenizer_sha256, &run.text_sha256,
                                  &run.token_ids_sha256, &run.protocol, &run.score, &run.bos, &run.compute})
    add(*part);
  for (const EvalWindow& window : input.windows) {
    add(sha256_of_ids(window.ids));
    add(sha256_of_ids(window.targets));
    add(fmt::format("{}", window.weight));
  }
  for (const std::string& part : more) add(part);
  // Another program or arithmetic must not finish what this one began.
  add(fmt::format("{} {} {} {}", run.version, run.git_revision, run.device, has_bf16_products()));
  return key.hex();
}

std::string now_utc() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace quantmap
