// An HDF5 file that can be killed at any moment and opens again in the state of its last commit.
//
// HDF5 alone cannot promise that: its metadata (headers, indices, attributes) are written in place, in many
// small pieces, and a process that ends between two of them leaves a file that may not open. Here a file
// driver of our own (HDF5's virtual file layer) lets raw data through to space that no committed metadata
// speak of, and holds metadata back in memory. A commit brings the raw data to the disk, writes the held
// pages to FILE.journal with a checksum, then to the file, then removes the journal. Opening for writing
// finishes a journal that is whole and drops one that is not; so every commit happens or does not. What the
// result holds is plain HDF5 for every reader.
//
// The rule that callers keep: raw data that were committed are not written again with another size (a
// compressed chunk is written once).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "capture/hdf5.hpp"

namespace quantmap {

class JournaledFile {
 public:
  // A new file; what is there is refused. Nothing stays behind if it ends before the first commit.
  static JournaledFile create(const std::filesystem::path& path);
  // An existing one, recovered. Throws Error (input) for what is no HDF5 file or is cut short, Error (failed)
  // where another process writes it.
  static JournaledFile open(const std::filesystem::path& path);
  JournaledFile(JournaledFile&&) noexcept;
  JournaledFile& operator=(JournaledFile&&) noexcept;
  // Drops what was not committed.
  ~JournaledFile();

  hid_t id() const;
  const std::string& name() const;
  // Throws Error (failed) with the system's reason; the file then stays as the last commit left it.
  void commit();
  // The system's reason for the last write that failed, or HDF5's own.
  std::string reason() const;

 private:
  struct State;
  explicit JournaledFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quantmap
