#include "app/machine.hpp"

#include <fmt/format.h>

#include <fstream>

#include "core/parallel.hpp"
#include "kernels/matmul/matmul.hpp"

namespace quantmap {

std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(file, line))
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  return fmt::format("{}, {} threads{}", model, thread_count(),
                     has_bf16_products() ? ", BF16 products" : ", BF16 operands multiplied in FP32");
}

}  // namespace quantmap
