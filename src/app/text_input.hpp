// The text or token ids of a command, read, tokenized and cut into windows; and the run that is measured on
// them, described for the database. Shared by every command that runs the model.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "evals/token_ids.hpp"
#include "model/operand.hpp"
#include "store/records.hpp"

namespace quantmap {

struct InputRequest {
  std::string model;
  std::string text;       // path; or
  std::string token_ids;  // path
  ProtocolOptions protocol;
  std::optional<std::int64_t> windows;
  Compute compute = Compute::bf16;
};

// --model (positional), --text, --token-ids, --ctx, --windows, --bos and --compute.
void add_input_options(boost::program_options::options_description& options);
// Throws Error (usage) where they contradict each other or the model is missing. Whether a text is needed is
// the command's matter.
InputRequest input_request(const std::string& command, const boost::program_options::variables_map& values);

struct TextInput {
  Protocol protocol;
  std::string score;  // in place of the protocol's rule: `mask DIGEST` where the ids bring their own
  Segments segments;  // of the scored tokens, windows cut off by --windows left out
  std::vector<EvalWindow> windows;
  std::string text_sha256, tokenizer_sha256, ids_sha256, name;
  std::vector<std::int32_t> first_ids;
  std::int64_t text_tokens = 0, dropped_tokens = 0;
  bool bos_added = false;
};
// Throws Error (input) naming the file for anything that cannot be used.
TextInput read_text_input(const InputRequest& request, const Checkpoint& checkpoint);

// Everything of a run's record but its key, its plan and its end.
RunRecord describe_run(const std::string& command, const std::string& command_line,
                       const CommonOptions& common, const InputRequest& request, const Checkpoint& checkpoint,
                       const TextInput& input);
// The run's identity: SHA-256 of everything that its numbers depend on, `more` (schemes, switches) included.
std::string run_key(const RunRecord& run, const TextInput& input, const std::vector<std::string>& more);

// What every run says of this program and machine, whatever it measures.
RunRecord begun_run(const std::string& command, const std::string& command_line, const CommonOptions& common);

std::string now_utc();  // ISO 8601

}  // namespace quantmap
