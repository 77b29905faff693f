// Tokenizers for tests: written to a fresh folder and loaded as a user's would be.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "support/paths.hpp"
#include "tokenizer/tokenizer.hpp"

namespace quantmap::testing {

using Ids = std::vector<std::int32_t>;

inline std::filesystem::path golden(const std::string& name) {
  return source_dir() / "tests/golden/tokenizer" / name;
}
inline nlohmann::json golden_json(const std::string& name) {
  return nlohmann::json::parse(read_text_file(golden(name)));
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A folder with these files in it, of this test alone.
inline std::filesystem::path folder_with(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = fresh_dir(std::string("tokenizer_") + info->test_suite_name() + "_" + info->name());
  for (const auto& [name, text] : files) write_file(folder / name, text);
  return folder;
}

inline std::unique_ptr<Tokenizer> from_json(const nlohmann::json& tokenizer, const std::string& config = "") {
  std::vector<std::pair<std::string, std::string>> files = {{"tokenizer.json", tokenizer.dump()}};
  if (!config.empty()) files.emplace_back("tokenizer_config.json", config);
  return load_tokenizer(folder_with(files));
}

// The line of the Error (input) that `action` throws; empty, with a failure, if it throws none.
template <typename Action>
std::string input_error(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line: " << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// A BPE tokenizer.json with this vocabulary (ids in order) and merges.
inline nlohmann::json small_bpe(const std::vector<std::string>& tokens, const nlohmann::json& merges) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (std::size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

}  // namespace quantmap::testing
