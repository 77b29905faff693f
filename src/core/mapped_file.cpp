#include "core/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace quantmap {
namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  // O_NONBLOCK: opening a FIFO that nobody writes would wait for ever; it means nothing to a regular file.
  const Descriptor file{::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) fail_input("cannot open file", name_, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) fail_input("cannot read file", name_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail_input("cannot read file", name_, "not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) {
    size_ = 0;
    fail_input("cannot map file", name_, std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::release(std::size_t begin, std::size_t end) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = end >= size_ ? (size_ + page - 1) / page * page : end / page * page;  // the last page is cut short
  if (data_ && begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path) { return std::string(MappedFile(path).text()); }

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  const std::string beside = path.string() + ".part";
  const auto give_up = [&](const char* what) {
    const int reason = errno;
    ::unlink(beside.c_str());
    fail(what, path.string(), std::strerror(reason));
  };
  {
    const Descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (file.fd < 0) fail("cannot write file", path.string(), std::strerror(errno));
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t written = ::write(file.fd, rest.data(), rest.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        give_up("cannot write file");
      }
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(file.fd) != 0) give_up("cannot write file");
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) give_up("cannot write file");
}

}  // namespace quantmap
