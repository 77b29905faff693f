// A capture file being made: every dataset of the selection is laid out when it is created, then filled, and
// marked complete dataset by dataset. A commit puts data and marks into effect together
// (journaled_file.hpp), so a file that was killed goes on from its last commit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capture/chunk_writer.hpp"
#include "capture/journaled_file.hpp"
#include "capture/layout.hpp"
#include "capture/reader.hpp"
#include "checkpoint/tensor_source.hpp"

namespace quantmap {

// All that a capture will hold, decided before its first value.
struct CaptureContents {
  CaptureInfo info;
  ModelConfig config;
  std::vector<std::int32_t> tokens;  // [windows][ctx]
  std::vector<std::int32_t> rows;    // kept positions of each window
  std::vector<CaptureSite> sites;
  std::vector<TensorEntry> tensors;
  int site_level = 0, tensor_level = 0;  // of compression
};

class CaptureWriter {
 public:
  static CaptureWriter create(const std::filesystem::path& path, const CaptureContents& contents);
  // Goes on with a file of the same contents; throws Error (input) naming what differs.
  static CaptureWriter resume(const std::filesystem::path& path, const CaptureContents& contents);
  // Whether a capture was begun there: false for no file, and for one that was killed before its first commit
  // (which is removed).
  static bool begun(const std::filesystem::path& path);

  // Windows [0, n) of a site are in the file; all of them: it is complete.
  std::int64_t site_windows(std::size_t site) const { return sites_[site].windows; }
  bool tensor_complete(std::size_t tensor) const { return tensors_[tensor].windows > 0; }
  ChunkWriter& site(std::size_t site) { return *sites_[site].writer; }
  ChunkWriter& tensor(std::size_t tensor) { return *tensors_[tensor].writer; }
  const ChunkWriter& site(std::size_t site) const { return *sites_[site].writer; }

  // Marks; in effect after the next commit.
  void mark_site(std::size_t site, std::int64_t windows);
  void mark_tensor(std::size_t tensor);
  void mark_file();
  void commit() { file_->commit(); }

  std::int64_t datasets() const { return static_cast<std::int64_t>(sites_.size() + tensors_.size()); }
  std::int64_t complete() const;
  struct Overflows {
    std::int64_t values = 0, datasets = 0;
  };
  Overflows overflows() const;

 private:
  struct Dataset {
    std::unique_ptr<ChunkWriter> writer;
    std::int64_t windows = 0;  // done; a tensor has one
  };
  CaptureWriter(JournaledFile file, std::int64_t windows);
  void create_contents(const CaptureContents& contents);
  void open_contents(const CaptureContents& contents);
  void check_same(const CaptureContents& contents) const;
  Dataset open_dataset(const std::string& path, const DatasetShape& shape, StoreType store) const;
  void mark(Dataset& dataset, std::int64_t windows, bool complete);

  std::unique_ptr<JournaledFile> file_;  // stays where it is: datasets refer to it
  std::int64_t windows_ = 0;
  std::vector<Dataset> sites_, tensors_;
};

DatasetShape site_shape(const CaptureSite& site, std::int64_t windows, std::int64_t rows);
DatasetShape tensor_shape(const TensorEntry& tensor);

}  // namespace quantmap
