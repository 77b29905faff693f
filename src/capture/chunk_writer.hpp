// Values of one dataset on their way to the file: blocks come from any thread in any order, chunks are put
// together, converted, compressed and written as soon as they are whole, each once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "capture/hdf5.hpp"
#include "capture/journaled_file.hpp"
#include "capture/layout.hpp"

namespace quantmap {

// A dataset of floats seen as [rows][cols]: of rank 1 (one row), 2, or 3 ([rows][heads][cols / heads]).
struct DatasetShape {
  int rank = 2;
  std::int64_t rows = 0, cols = 0, heads = 0;
  ChunkShape chunk;
};

class ChunkWriter {
 public:
  // level: of deflate behind a byte shuffle, as the dataset was created; 0: neither. A chunk that this makes
  // less than a twentieth smaller is written plain.
  ChunkWriter(const JournaledFile& file, Hdf5Handle dataset, const DatasetShape& shape, StoreType store,
              int level, std::int64_t overflows);
  ~ChunkWriter() = default;
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  // Rows [row, row + rows), columns [col, col + cols); no value twice. Thread-safe. Throws Error (failed).
  void put(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, const float* data,
           std::int64_t stride);

  const DatasetShape& shape() const { return shape_; }
  hid_t id() const { return dataset_.get(); }
  // Finite values that the type stores as infinities.
  std::int64_t overflows() const { return overflows_; }
  // Chunks of which some values came and some did not.
  std::size_t open_chunks() const;
  // Buffers that a thread keeps for its next chunk.
  static std::int64_t scratch_bytes(const ChunkShape& chunk);

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  // row and column, in chunks
  struct Open {
    std::vector<float> values;  // [chunk rows][chunk cols]
    std::int64_t count = 0;
  };
  void write(Place place, const float* data, std::int64_t stride);
  std::int64_t valid_rows(Place place) const;
  std::int64_t valid_cols(Place place) const;

  const JournaledFile& file_;
  Hdf5Handle dataset_;
  DatasetShape shape_;
  StoreType store_;
  int level_;
  std::atomic<std::int64_t> overflows_;
  mutable std::mutex mutex_;
  std::map<Place, Open> open_;
};

}  // namespace quantmap
