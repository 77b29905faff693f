// The bytes of one file under a journal: raw data go to it at once, metadata are held back in memory, and a
// commit makes all that is held take effect, or nothing of it, also where the process is killed in between.
// Knows nothing of HDF5 (journaled_file.hpp does).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace quantmap {

// Where a commit is written before it is made: FILE.journal.
std::filesystem::path journal_path(const std::filesystem::path& path);

class PageJournal {
 public:
  // Opens for reading and writing, for this process alone, and finishes or drops a commit that was cut off.
  // Throws Error (failed) with the system's reason; `create`: the file must not exist.
  PageJournal(const std::filesystem::path& path, bool create);
  // Cuts off what was written behind the last commit; a new file without a commit is removed.
  ~PageJournal();
  PageJournal(const PageJournal&) = delete;
  PageJournal& operator=(const PageJournal&) = delete;

  // False with errno kept in error(); reading behind the end gives zeros. After the first failure nothing can
  // be committed any more, and what is written is accepted and dropped: HDF5 writes again what it could not
  // write when it closes a file, and a close that fails leaves it in a state in which it ends the process.
  bool read(std::uint64_t at, std::size_t count, char* out);
  bool write_raw(std::uint64_t at, std::size_t count, const char* data);
  bool hold(std::uint64_t at, std::size_t count, const char* data);
  // Everything held, and the file's size. Throws Error (failed).
  void commit();

  // What the file holds up to end() is taken for the last commit.
  void adopt() { committed_ = end_; }

  std::uint64_t size() const { return size_; }  // what is held included
  std::uint64_t end() const { return end_; }    // of the addresses in use; the file's size after a commit
  void set_end(std::uint64_t end) { end_ = end; }
  int error() const { return error_; }  // of the last write or read that failed; 0: none
  const std::string& name() const { return path_; }

 private:
  static constexpr std::size_t kPage = 4096;
  using Page = std::array<char, kPage>;

  void lock();
  void recover();
  bool put(std::uint64_t at, std::size_t count, const char* data, bool make);
  bool write_journal(const std::string& journal) const;
  bool apply() const;
  template <class Visit>  // visit(page, offset in it, offset in the block, count) for each page of a block
  bool for_pages(std::uint64_t at, std::size_t count, bool make, const Visit& visit);

  std::string path_;
  int descriptor_ = -1;
  bool created_ = false;
  std::uint64_t size_ = 0, end_ = 0;
  std::uint64_t committed_ = 0;          // end at the last commit; 0: there was none
  std::map<std::uint64_t, Page> pages_;  // held, by number
  int error_ = 0;
};

}  // namespace quantmap
