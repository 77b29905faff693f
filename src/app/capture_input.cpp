#include "app/capture_input.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace quantmap {

void refuse_text_options(const boost::program_options::variables_map& values) {
  for (const char* option : {"text", "token-ids", "ctx", "windows", "bos"})
    if (values.count(option))
      fail_usage(fmt::format("--{}", option), "a capture brings its own tokens and windows");
  if (!values["compute"].defaulted()) fail_usage("--compute", "a capture brings its own");
}

TextInput captured_input(const Capture& capture, bool whole_windows) {
  const CaptureInfo& info = capture.info();
  if (info.windows > 0 && !capture.keeps_all_rows() && whole_windows)
    fail_input("capture", capture.path().string(), "some tokens of its windows were left out",
               "whole windows (captured without --every and --tokens)",
               fmt::format("{} of {} tokens", capture.rows().size(), info.ctx));
  std::vector<std::vector<std::int32_t>> ids;
  for (std::int64_t w = 0; w < info.windows; ++w) {
    const auto tokens = capture.tokens(w);
    ids.emplace_back(tokens.begin(), tokens.end());
  }
  TextInput input;
  input.protocol.ctx = info.ctx;
  if (!ids.empty()) input.windows = windows_of_ids(std::move(ids), input.protocol);
  return input;
}

RunRecord describe_captured_run(const std::string& command, const std::string& command_line,
                                const CommonOptions& common, const Capture& capture, const TextInput& input,
                                const std::string& note) {
  const CaptureInfo& info = capture.info();
  RunRecord run = begun_run(command, command_line, common);
  run.model = capture.path().string();
  run.model_type = info.model_type;
  run.model_sha256 = info.model_sha256;
  run.tokenizer_sha256 = info.tokenizer_sha256;
  run.text_sha256 = info.text_sha256;
  run.token_ids_sha256 = info.token_ids_sha256;
  run.text = info.text;
  run.ctx = info.ctx;
  run.windows = static_cast<std::int64_t>(input.windows.size());
  run.bos = info.bos;
  run.compute = compute_name(info.compute);
  run.first_ids = "[]";
  auto notes = nlohmann::json::array({note});
  if (info.store != StoreType::f32)
    notes.push_back("the capture keeps rounded values: these are not the model's own to the bit");
  run.notes = notes.dump();
  return run;
}

}  // namespace quantmap
