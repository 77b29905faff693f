#include "evals/holm.hpp"

#include <algorithm>

namespace quantmap {

std::vector<HolmTest> holm(std::span<const Number> p) {
  std::vector<HolmTest> tests(p.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i]) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return *p[a] < *p[b]; });
  double largest = 0;
  for (std::size_t j = 0; j < order.size(); ++j) {
    HolmTest& test = tests[order[j]];
    test.tests_left = static_cast<double>(order.size() - j);
    largest = std::max(largest, std::min(1.0, test.tests_left * *p[order[j]]));
    test.p = largest;
  }
  return tests;
}

}  // namespace quantmap
