// Captures of tiny models, made and compared.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "capture/capture.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {

struct CaptureSetup {
  CaptureSelection selection;
  Compute compute = Compute::f32;
  StoreType store = StoreType::f32;
  std::int64_t ctx = 40, windows = 3;
  std::optional<std::int64_t> every, tokens;
  std::int64_t memory = std::int64_t{1} << 30;
  int level = 0;
};

// Ids that depend on the place alone.
inline std::vector<std::int32_t> window_ids(std::int64_t count, std::int64_t vocab) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int32_t>((i * i * 7 + i * 13 + 5) % vocab));
  return ids;
}

inline CaptureJob capture_job(const Checkpoint& checkpoint, const std::filesystem::path& path,
                              const CaptureSetup& setup = {}) {
  CaptureJob job;
  job.checkpoint = &checkpoint;
  job.contents = capture_contents(checkpoint, setup.selection);
  job.contents.tokens = window_ids(setup.ctx * setup.windows, checkpoint.config().vocab_size);
  job.contents.rows = kept_rows(setup.ctx, setup.every, setup.tokens);
  job.contents.site_level = job.contents.tensor_level = setup.level;
  CaptureInfo& info = job.contents.info;
  info.compute = setup.compute;
  info.store = setup.store;
  info.ctx = setup.ctx;
  info.windows = setup.windows;
  info.model_sha256 = checkpoint.fingerprint();
  info.version = "test";
  job.path = path;
  job.memory = setup.memory;
  return job;
}

// Every site's rows, and every tensor.
using Values = std::map<std::string, std::vector<float>>;
inline Values read_all(const Capture& capture) {
  Values all;
  const auto kept = static_cast<std::int64_t>(capture.rows().size());
  for (const std::string& site : capture.sites()) {
    const std::int64_t width = capture.width(site);
    auto& to = all[site];
    to.resize(static_cast<std::size_t>(capture.info().windows * kept * width));
    for (std::int64_t w = 0; w < capture.info().windows; ++w)
      capture.read_rows(site, w, 0, kept, to.data() + w * kept * width);
  }
  for (const TensorEntry& tensor : capture.tensors()) {
    auto& to = all[tensor.name];
    const std::int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
    to.resize(static_cast<std::size_t>(rows * tensor.shape.back()));
    capture.read(tensor.name, 0, rows, to.data());
  }
  return all;
}

inline void expect_same_bits(const Values& a, const Values& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    const auto& other = b.at(name);
    ASSERT_EQ(values.size(), other.size()) << name;
    EXPECT_EQ(std::memcmp(values.data(), other.data(), values.size() * sizeof(float)), 0) << name;
  }
}

}  // namespace quantmap::testing
