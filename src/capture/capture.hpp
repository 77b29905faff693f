// The job of `quantmap capture`: the reference walks through the model, layer by layer, and hooks at its
// sites write what passes to a file (writer.hpp). Windows go in passes where they do not fit in memory; the
// values do not depend on how, nor on the threads. An interrupted capture ends behind the layer it is in and
// goes on from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "capture/writer.hpp"
#include "checkpoint/checkpoint.hpp"
#include "model/rope_table.hpp"

namespace quantmap {

struct CapturePlan {
  std::int64_t windows_per_pass = 0, passes = 0;
  std::int64_t bytes = 0;       // allocated at the peak
  std::int64_t file_bytes = 0;  // values to write, before compression
};

struct CaptureJob {
  const Checkpoint* checkpoint = nullptr;
  CaptureContents contents;
  std::filesystem::path path;
  bool resume = false;
  std::int64_t memory = 0;        // bound on what is allocated
  std::optional<RopeTable> rope;  // other tables than the configuration's (Forward::set_rope)
  std::function<void(const CapturePlan&)> announce;  // before the first tensor
  std::function<void(std::int64_t bytes)> progress;  // more values were written; on any thread
  std::function<bool()> interrupted;                 // asked between steps
};

struct CaptureReport {
  std::int64_t datasets = 0;
  CaptureWriter::Overflows overflows;
  bool was_complete = false;  // nothing was left to do
};

// Which layers, tensors and sites; everything that CaptureContents needs of a checkpoint.
CaptureContents capture_contents(const Checkpoint& checkpoint, const CaptureSelection& selection);
// Positions kept of each window: all, every Nth from the first, or N spread evenly from the first.
std::vector<std::int32_t> kept_rows(std::int64_t ctx, std::optional<std::int64_t> every,
                                    std::optional<std::int64_t> tokens);

// Throws Error (usage) if memory does not suffice for one window, naming the least possible; Error
// (interrupted) with what is done; Error (failed) where the file cannot be written.
CaptureReport run_capture(const CaptureJob& job);

}  // namespace quantmap
