// GGUF bytes of whole weights of the demo model, against gguf-py and libggml
// (tests/golden/formats/make_gguf_py.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "core/fingerprint.hpp"
#include "formats/ggml_encode.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

TEST(GgmlWeights, OfTheDemoModelAreOthersBytes) {
  const auto file =
      nlohmann::json::parse(std::ifstream(testing::source_dir() / "tests/golden/formats/gguf_py.json"));
  const Checkpoint demo = Checkpoint::open(testing::demo_dir());
  std::size_t checked = 0;
  for (const auto& weight : file["weights"]) {
    const std::string name = weight["name"];
    const TensorEntry* tensor = demo.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    const std::int64_t rows = tensor->shape[0], cols = tensor->shape[1];
    std::vector<float> values(static_cast<std::size_t>(rows * cols));
    demo.read(name, 0, rows, values.data());
    for (const auto& item : weight["sha256"].items()) {
      const std::string& kind = item.key();
      const auto types = ggml_types();
      const auto type =
          std::find_if(types.begin(), types.end(), [&](const GgmlType& t) { return t.name == kind; });
      ASSERT_NE(type, types.end()) << kind;
      std::string bytes(static_cast<std::size_t>(rows * cols / type->block * type->bytes), '\0');
      encode_ggml(*type, values.data(), rows * cols, reinterpret_cast<std::byte*>(bytes.data()));
      EXPECT_EQ(sha256(bytes), item.value().get<std::string>()) << name << " as " << kind;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2U * 18U);
}

}  // namespace
}  // namespace quantmap
