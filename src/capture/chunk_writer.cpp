#include "capture/chunk_writer.hpp"

#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/simd.hpp"
#include "formats/bf16.hpp"
#include "formats/bf16_array.hpp"
#include "formats/fp16.hpp"

namespace quantmap {
namespace {

QUANTMAP_SIMD std::int64_t count_infinite(const float* x, std::int64_t count) {
  std::int64_t infinite = 0;
  for (std::int64_t i = 0; i < count; ++i)
    infinite += (std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU) == 0x7F800000U ? 1 : 0;
  return infinite;
}

QUANTMAP_SIMD std::int64_t count_codes(const std::uint16_t* codes, std::int64_t count,
                                       std::uint16_t infinity) {
  std::int64_t infinite = 0;
  for (std::int64_t i = 0; i < count; ++i) infinite += (codes[i] & 0x7FFFU) == infinity ? 1 : 0;
  return infinite;
}

void array_to_fp16(const float* x, std::int64_t count, std::uint16_t* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = fp16_from_float(x[i]);
}

// One row as it lies in the file; returns how many finite values became infinite.
std::int64_t store_row(StoreType store, const float* x, std::int64_t count, std::byte* out) {
  if (store == StoreType::f32) {
    std::memcpy(out, x, static_cast<std::size_t>(count) * sizeof *x);
    return 0;
  }
  auto* codes = reinterpret_cast<std::uint16_t*>(out);
  if (store == StoreType::bf16) {
    array_to_bf16(x, count, codes);
    return count_codes(codes, count, 0x7F80) - count_infinite(x, count);
  }
  array_to_fp16(x, count, codes);
  return count_codes(codes, count, 0x7C00) - count_infinite(x, count);
}

// HDF5's shuffle filter: all first bytes, then all second bytes, …
void shuffle(const std::byte* from, std::size_t values, std::size_t size, std::byte* to) {
  for (std::size_t byte = 0; byte < size; ++byte)
    for (std::size_t i = 0; i < values; ++i) to[byte * values + i] = from[i * size + byte];
}

constexpr std::uint32_t kNoFilter = 0x3;  // mask of the two filters that a chunk leaves out

}  // namespace

ChunkWriter::ChunkWriter(const JournaledFile& file, Hdf5Handle dataset, const DatasetShape& shape,
                         StoreType store, int level, std::int64_t overflows)
    : file_(file),
      dataset_(std::move(dataset)),
      shape_(shape),
      store_(store),
      level_(level),
      overflows_(overflows) {}

std::int64_t ChunkWriter::valid_rows(Place place) const {
  return std::min(shape_.chunk.rows, shape_.rows - place.first * shape_.chunk.rows);
}

std::int64_t ChunkWriter::valid_cols(Place place) const {
  return std::min(shape_.chunk.cols, shape_.cols - place.second * shape_.chunk.cols);
}

std::size_t ChunkWriter::open_chunks() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

std::int64_t ChunkWriter::scratch_bytes(const ChunkShape& chunk) {
  const std::int64_t bytes = chunk.rows * chunk.cols * 4;
  return 2 * bytes + static_cast<std::int64_t>(compressBound(static_cast<uLong>(bytes)));
}

void ChunkWriter::put(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols,
                      const float* data, std::int64_t stride) {
  const auto& [chunk_rows, chunk_cols] = shape_.chunk;
  if (row < 0 || col < 0 || row + rows > shape_.rows || col + cols > shape_.cols)
    fail("capture", file_.name(), "values outside of their dataset");
  for (std::int64_t y = row / chunk_rows; y * chunk_rows < row + rows; ++y)
    for (std::int64_t x = col / chunk_cols; x * chunk_cols < col + cols; ++x) {
      const Place place{y, x};
      const std::int64_t row_begin = std::max(row, y * chunk_rows), col_begin = std::max(col, x * chunk_cols);
      const std::int64_t height = std::min(row + rows, (y + 1) * chunk_rows) - row_begin;
      const std::int64_t width = std::min(col + cols, (x + 1) * chunk_cols) - col_begin;
      const float* from = data + (row_begin - row) * stride + (col_begin - col);
      const std::int64_t wanted = valid_rows(place) * valid_cols(place);
      if (height * width == wanted) {
        write(place, from, stride);
        continue;
      }
      std::vector<float> whole;
      {
        const std::lock_guard lock(mutex_);
        Open& open = open_[place];
        open.values.resize(static_cast<std::size_t>(chunk_rows * chunk_cols));
        float* to =
            open.values.data() + (row_begin - y * chunk_rows) * chunk_cols + col_begin - x * chunk_cols;
        for (std::int64_t r = 0; r < height; ++r)
          std::copy(from + r * stride, from + r * stride + width, to + r * chunk_cols);
        open.count += height * width;
        if (open.count < wanted) continue;
        whole = std::move(open.values);
        open_.erase(place);
      }
      write(place, whole.data(), chunk_cols);
    }
}

void ChunkWriter::write(Place place, const float* data, std::int64_t stride) {
  thread_local std::vector<std::byte> stored, shuffled, packed;
  const auto size = static_cast<std::size_t>(store_bytes(store_));
  const auto& [chunk_rows, chunk_cols] = shape_.chunk;
  const auto values = static_cast<std::size_t>(chunk_rows * chunk_cols);
  const std::int64_t rows = valid_rows(place), cols = valid_cols(place);
  stored.resize(values * size);
  if (rows * cols < chunk_rows * chunk_cols) std::fill(stored.begin(), stored.end(), std::byte{0});
  std::int64_t overflows = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    overflows += store_row(store_, data + r * stride, cols,
                           stored.data() + static_cast<std::size_t>(r * chunk_cols) * size);
  if (overflows > 0) overflows_ += overflows;

  const std::byte* out = stored.data();
  std::size_t bytes = stored.size();
  std::uint32_t mask = level_ > 0 ? kNoFilter : 0;
  if (level_ > 0) {
    shuffled.resize(stored.size());
    shuffle(stored.data(), values, size, shuffled.data());
    uLongf length = compressBound(static_cast<uLong>(stored.size()));
    packed.resize(length);
    if (compress2(reinterpret_cast<Bytef*>(packed.data()), &length,
                  reinterpret_cast<const Bytef*>(shuffled.data()), static_cast<uLong>(shuffled.size()),
                  level_) != Z_OK)
      fail("cannot write capture", file_.name(), "zlib ran out of memory");
    if (length < stored.size() - stored.size() / 20) {
      out = packed.data();
      bytes = length;
      mask = 0;
    }
  }
  const std::int64_t row = place.first * chunk_rows, col = place.second * chunk_cols;
  const auto y = static_cast<hsize_t>(row), x = static_cast<hsize_t>(col);
  const hsize_t offset[3] = {shape_.rank == 1 ? x : y, shape_.rank == 2 ? x : 0, 0};
  const Hdf5Lock lock;
  if (H5Dwrite_chunk(dataset_.get(), H5P_DEFAULT, mask, offset, bytes, out) < 0)
    fail("cannot write capture", file_.name(), file_.reason());
}

}  // namespace quantmap
