// The tiny models' expected.safetensors: what another implementation (transformers, FP32) computes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/mapped_file.hpp"

namespace quantmap::testing {

struct Golden {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// expected.safetensors: F32 and I32 tensors, read here by hand so that the test does not lean on the reader
// it also exercises.
inline std::map<std::string, Golden> read_golden(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  const auto json = nlohmann::json::parse(file.text().substr(8, header));
  std::map<std::string, Golden> tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    Golden golden;
    golden.shape = entry["shape"].get<std::vector<std::int64_t>>();
    const auto begin = entry["data_offsets"][0].get<std::size_t>(),
               end = entry["data_offsets"][1].get<std::size_t>();
    const std::byte* data = bytes.data() + 8 + header + begin;
    if (entry["dtype"] == "F32") {
      golden.values.resize((end - begin) / 4);
      std::memcpy(golden.values.data(), data, end - begin);
    } else if (entry["dtype"] == "I32") {
      for (std::size_t at = 0; at < end - begin; at += 4) {
        std::int32_t value = 0;
        std::memcpy(&value, data + at, 4);
        golden.values.push_back(static_cast<float>(value));
      }
    } else {
      ADD_FAILURE() << name << " has dtype " << entry["dtype"];
    }
    tensors[name] = std::move(golden);
  }
  return tensors;
}

// max |a - b| <= 2e-4 max |b| (issue 3).
inline void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double gap = std::abs(double{got[i]} - double{want[i]});
    worst = !(gap <= worst) ? gap : worst;
    largest = std::max(largest, std::abs(double{want[i]}));
  }
  EXPECT_TRUE(worst <= 2e-4 * largest) << what << ": max difference " << worst << " of " << largest;
}

}  // namespace quantmap::testing
