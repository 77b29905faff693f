// What `bench` reports: one row a rate, with its repetitions, their spread, and its ratio to a limit that was
// measured in the same run. Rates of different runs or machines mean little beside each other; ratios do.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/table.hpp"

namespace quantmap {

struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread spread_of(std::vector<double> values);  // of at least one

struct BenchRow {
  std::string section, name, shape;
  std::string unit;
  std::vector<double> values;        // one a repetition
  std::optional<double> bytes_rate;  // GB/s of bytes read, at the median
  std::vector<double> ratios;        // one a repetition, or empty
  std::string ratio_to;              // what the ratio's 1 is
};

// Time by the clock on the wall, and of the processors: the latter leaves out what other programs take.
struct Elapsed {
  double wall = 0, cpu = 0;
};
double seconds_of_clock(clockid_t clock);

template <typename Body>
Elapsed elapsed(Body&& body) {
  const double cpu = seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID), wall = seconds_of_clock(CLOCK_MONOTONIC);
  body();
  return {seconds_of_clock(CLOCK_MONOTONIC) - wall, seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu};
}

// `repetitions` times: the time of one call of `body`, which is called as often as takes `least` seconds.
template <typename Body>
std::vector<Elapsed> time_calls(int repetitions, double least, Body&& body) {
  body();  // warm: pages, caches, kernels compiled on first use
  std::int64_t calls = 1;
  std::vector<Elapsed> times;
  while (static_cast<int>(times.size()) < repetitions) {
    const Elapsed time = elapsed([&] {
      for (std::int64_t i = 0; i < calls; ++i) body();
    });
    if (time.cpu < least && times.empty()) {
      calls *= 2;
      continue;
    }
    const auto each = static_cast<double>(calls);
    times.push_back({time.wall / each, time.cpu / each});
  }
  return times;
}

// One table a section, for people.
std::vector<Table> section_tables(std::span<const BenchRow> rows);
// Every row with its section, the machine and the model, for programs.
Table flat_table(std::span<const BenchRow> rows, const std::string& machine, const std::string& model);

}  // namespace quantmap
