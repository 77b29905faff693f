#include "checkpoint/make_files.hpp"
#include "checkpoint/mutate.hpp"
#include "checkpoint/safetensors.hpp"

namespace quantmap::testing {
namespace {

TEST(SafetensorsMutation, EveryChangedFileIsReadOrRefused) {
  const std::vector<std::string> files = {
      safetensors_file({{"a.weight", "F32", {2, 3}, std::string(24, 'a')},
                        {"b", "BF16", {5}, std::string(10, 'b')},
                        {"c", "F4", {2, 4}, "cdef"},
                        {"empty", "U8", {0, 7}, ""}}),
      safetensors_file(
          R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})", "xy"),
      safetensors_file("{}"),
  };
  expect_read_or_refused(files, 300, 6000, [](const std::string& bytes) {
    // On the heap at its exact size, so that a sanitizer sees a byte too far.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const auto file = SafetensorsFile::parse(as_span({exact.data(), exact.size()}), "mutated");
    unsigned sum = 0;
    for (const SafetensorsEntry& tensor : file.tensors()) {
      ASSERT_EQ(file.find(tensor.name), &tensor);
      for (std::int64_t i = 0; i < tensor.bytes; ++i) sum += static_cast<unsigned>(tensor.data[i]);
    }
    ASSERT_LE(sum, 255U * bytes.size());
  });
}

}  // namespace
}  // namespace quantmap::testing
