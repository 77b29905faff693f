#include <fmt/format.h>

#include "app/bench_kernels.hpp"
#include "core/random.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/quantize.hpp"
#include "kernels/quantize_error/quantize_error.hpp"
#include "model/operand.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {
namespace {

constexpr const char* kQuantizers = "Quantizers, one thread";
constexpr const char* kMeasured = "Quantize and measure, one thread";
constexpr std::int64_t kPoolValues = std::int64_t{1} << 24;  // 64 MiB: beyond the caches
constexpr std::int64_t kPieceRows = 128, kPieceCols = 4096;

struct Matrix {
  const char* name;
  Role role;
  std::int64_t rows, cols;
  std::vector<float> values;
};

Matrix gaussian(const char* name, Role role, std::int64_t rows, std::int64_t cols) {
  Matrix matrix{name, role, rows, cols, std::vector<float>(static_cast<std::size_t>(rows * cols))};
  fill_gaussian(1, matrix.values.data(), rows * cols);
  return matrix;
}

BenchRow quantizer_row(const KernelBench& bench, const char* section, const Matrix& matrix, std::string name,
                       const std::vector<Elapsed>& times) {
  BenchRow row{section,
               std::move(name),
               fmt::format("{} {}x{}", matrix.name, matrix.rows, matrix.cols),
               "ns/value",
               {},
               {},
               {},
               "memcpy, one thread"};
  const auto count = static_cast<double>(matrix.rows * matrix.cols);
  for (const Elapsed& time : times) {
    row.values.push_back(time.cpu / count * 1e9);
    row.ratios.push_back(count * sizeof(float) / time.cpu / 1e9 / bench.copy_bandwidth);
  }
  row.bytes_rate = sizeof(float) / spread_of(row.values).median;
  return row;
}

// Encode, decode and measure, weights that come from memory: each call takes the next piece of a pool that no
// cache holds. A scale of the whole tensor is found from the piece first, in the time reported.
void add_measured(const KernelBench& bench, std::vector<BenchRow>& rows) {
  const std::vector<float> pool = gaussian("", Role::weight, kPoolValues / kPieceCols, kPieceCols).values;
  const Matrix piece{"weights", Role::weight, kPieceRows, kPieceCols, {}};
  std::vector<RowDifference> errors(static_cast<std::size_t>(kPieceRows));
  constexpr std::int64_t kPieces = kPoolValues / (kPieceRows * kPieceCols);
  for (const Format& format : formats()) {
    const QuantSpec spec = parse_quant_spec(format.id, Role::weight);
    QuantCounts counts;
    std::int64_t next = 0;
    rows.push_back(quantizer_row(bench, kMeasured, piece, spelling(spec, Role::weight),
                                 time_calls(bench.repetitions, bench.least, [&] {
                                   quantize_error(spec, kPieceRows, kPieceCols,
                                                  pool.data() + next % kPieces * kPieceRows * kPieceCols,
                                                  nullptr, errors.data(), &counts);
                                   ++next;
                                 })));
  }
}

}  // namespace

std::vector<BenchRow> bench_quantizers(const KernelBench& bench) {
  std::vector<BenchRow> rows;
  const Matrix matrices[] = {
      gaussian("activations", Role::activation, kTileRows, bench.config->hidden_size),
      gaussian("weights", Role::weight, kChunkRows, bench.config->intermediate_size),
  };
  for (const Matrix& m : matrices) {
    std::vector<float> decoded(m.values.size());
    std::vector<std::uint16_t> operand(m.values.size());
    for (const Format& format : formats()) {
      const QuantSpec spec = parse_quant_spec(format.id, m.role);
      // A GGUF type that these rows would not be kept in would be another row under its name.
      if (format.kind == FormatKind::ggml && &ggml_stored_type(format, m.cols) != &ggml_type_of(format))
        continue;
      const std::string name = spelling(spec, m.role);
      QuantCounts counts;
      rows.push_back(quantizer_row(
          bench, kQuantizers, m, name + " decoded", time_calls(bench.repetitions, bench.least, [&] {
            quantize_dequantize(spec, m.rows, m.cols, m.values.data(), decoded.data(), nullptr, &counts);
          })));
      std::vector<float> outer(static_cast<std::size_t>(
          std::max(std::int64_t{1}, outer_scale_count(operand_form(spec), m.rows, m.cols))));
      rows.push_back(quantizer_row(bench, kQuantizers, m, name + " operand",
                                   time_calls(bench.repetitions, bench.least, [&] {
                                     quantize_operand_bf16(spec, m.rows, m.cols, m.values.data(),
                                                           operand.data(), outer.data(), nullptr, &counts);
                                   })));
    }
  }
  add_measured(bench, rows);
  return rows;
}

}  // namespace quantmap
