#include "capture/page_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhat = "cannot write capture";
constexpr std::string_view kMagic = "QMAPJNL1";

bool write_all(int descriptor, const char* data, std::size_t size, std::uint64_t at) {
  while (size > 0) {
    const ssize_t written = ::pwrite(descriptor, data, size, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    at += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// Zeros behind the end of the file.
bool read_all(int descriptor, char* data, std::size_t size, std::uint64_t at) {
  while (size > 0) {
    const ssize_t got = ::pread(descriptor, data, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) {
      std::memset(data, 0, size);
      return true;
    }
    data += got;
    at += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace

fs::path journal_path(const fs::path& path) { return path.string() + ".journal"; }

PageJournal::PageJournal(const fs::path& path, bool create) : path_(path.string()), created_(create) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0666);
  if (descriptor_ < 0) fail(kWhat, path_, std::strerror(errno));
  try {
    lock();
    if (create) {
      ::unlink(journal_path(path_).c_str());  // of an earlier file of this name
    } else {
      recover();
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail(kWhat, path_, std::strerror(errno));
    size_ = static_cast<std::uint64_t>(status.st_size);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

PageJournal::~PageJournal() {
  if (descriptor_ < 0) return;
  if (created_ && committed_ == 0) {
    ::unlink(path_.c_str());
  } else if (committed_ > 0) {
    // Raw data behind the last commit; a file that cannot be cut is only longer than it must be.
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(committed_));
  }
  ::close(descriptor_);
}

void PageJournal::lock() {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) fail(kWhat, path_, "another process has it open");
  // A file system without locks: nobody can be told apart.
}

template <class Visit>
bool PageJournal::for_pages(std::uint64_t at, std::size_t count, bool make, const Visit& visit) {
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t number = (at + done) / kPage;
    const std::size_t offset = (at + done) % kPage;
    const std::size_t part = std::min(kPage - offset, count - done);
    auto page = pages_.find(number);
    if (page == pages_.end() && make) {
      page = pages_.emplace(number, Page{}).first;
      if (!read_all(descriptor_, page->second.data(), kPage, number * kPage)) {
        error_ = errno;
        return false;
      }
    }
    if (page != pages_.end()) visit(page->second, offset, done, part);
    done += part;
  }
  return true;
}

bool PageJournal::read(std::uint64_t at, std::size_t count, char* out) {
  if (!read_all(descriptor_, out, count, at)) {
    error_ = errno;
    return false;
  }
  return for_pages(at, count, false,
                   [&](const Page& page, std::size_t offset, std::size_t done, std::size_t part) {
                     std::memcpy(out + done, page.data() + offset, part);
                   });
}

bool PageJournal::write_raw(std::uint64_t at, std::size_t count, const char* data) {
  if (error_ != 0) return true;
  if (!write_all(descriptor_, data, count, at)) {
    error_ = errno;
    return false;
  }
  return put(at, count, data, false);  // part of it may lie in a page that is held
}

bool PageJournal::hold(std::uint64_t at, std::size_t count, const char* data) {
  return error_ != 0 || put(at, count, data, true);
}

bool PageJournal::put(std::uint64_t at, std::size_t count, const char* data, bool make) {
  const auto copy = [&](Page& page, std::size_t offset, std::size_t done, std::size_t part) {
    std::memcpy(page.data() + offset, data + done, part);
  };
  if (!for_pages(at, count, make, copy)) return false;
  size_ = std::max(size_, at + count);
  return true;
}

bool PageJournal::write_journal(const std::string& journal) const {
  std::string text(kMagic);
  put_bytes(text, end_);
  put_bytes(text, static_cast<std::uint64_t>(pages_.size()));
  for (const auto& [number, page] : pages_) {
    put_bytes(text, number);
    text.append(page.data(), kPage);
  }
  text += sha256(text);
  const Descriptor out(::open(journal.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return out.get() >= 0 && write_all(out.get(), text.data(), text.size(), 0) && ::fsync(out.get()) == 0;
}

// Held pages to the file, cut at its end; done twice it gives the same.
bool PageJournal::apply() const {
  for (const auto& [number, page] : pages_) {
    const std::uint64_t at = number * kPage;
    if (at >= end_) continue;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPage, end_ - at));
    if (!write_all(descriptor_, page.data(), count, at)) return false;
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return false;
  if (static_cast<std::uint64_t>(status.st_size) < end_ &&
      ::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0)
    return false;
  return ::fdatasync(descriptor_) == 0;
}

void PageJournal::commit() {
  if (error_ != 0) fail(kWhat, path_, std::strerror(error_));
  if (::fdatasync(descriptor_) != 0) fail(kWhat, path_, std::strerror(errno));
  const std::string journal = journal_path(path_).string();
  if (!write_journal(journal)) {
    const int number = errno;
    ::unlink(journal.c_str());
    fail(kWhat, path_, std::strerror(number));
  }
  committed_ = end_;  // from here on the journal is the state, and opening the file finishes what fails below
  if (!apply()) fail(kWhat, path_, std::strerror(errno));
  ::unlink(journal.c_str());
  pages_.clear();
}

void PageJournal::recover() {
  const std::string journal = journal_path(path_).string();
  const Descriptor in(::open(journal.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.get() < 0) {
    if (errno == ENOENT) return;
    fail("cannot read file", journal, std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) fail("cannot read file", journal, std::strerror(errno));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (!read_all(in.get(), text.data(), text.size(), 0))
    fail("cannot read file", journal, std::strerror(errno));
  constexpr std::size_t kDigest = 64;
  const std::string_view body =
      std::string_view(text).substr(0, text.size() - std::min(text.size(), kDigest));
  // One that was not written to its end belongs to a commit that did not happen.
  const bool whole = body.starts_with(kMagic) && sha256(body) == std::string_view(text).substr(body.size());
  if (whole) {
    std::size_t at = kMagic.size();
    std::uint64_t count = 0;
    take_bytes(body, at, end_, "journal is cut short");
    take_bytes(body, at, count, "journal is cut short");
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t number = 0;
      take_bytes(body, at, number, "journal is cut short");
      take_bytes(body, at, pages_[number], "journal is cut short");
    }
    if (!apply()) fail(kWhat, path_, std::strerror(errno));
    pages_.clear();
    end_ = 0;
  }
  ::unlink(journal.c_str());
}

}  // namespace quantmap
