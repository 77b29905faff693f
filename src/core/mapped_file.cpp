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

namespace {

bool write_all(int descriptor, std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

[[noreturn]] void fail_writing(const std::filesystem::path& path, int reason) {
  fail("cannot write file", path.string(), std::strerror(reason));
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  namespace fs = std::filesystem;
  struct stat named {
  }, out{};
  if (::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 && named.st_dev == out.st_dev &&
      named.st_ino == out.st_ino) {  // /dev/stdout, whatever it leads to
    if (!write_all(STDOUT_FILENO, text)) fail_writing(path, errno);
    return;
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    // A pipe or a device is written to; a rename would put a file in its place.
    const Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)};
    if (file.fd < 0 || !write_all(file.fd, text)) fail_writing(path, errno);
    return;
  }
  // Behind a link the file is replaced, not the link.
  const fs::path target = fs::is_regular_file(status) ? fs::canonical(path, error) : path;
  if (error && fs::exists(status)) fail_writing(path, error.value());
  const std::string beside = target.string() + ".part";
  const auto give_up = [&] {
    const int reason = errno;
    ::unlink(beside.c_str());
    fail_writing(path, reason);
  };
  {
    const Descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (file.fd < 0) fail_writing(path, errno);
    if (!write_all(file.fd, text) || ::fsync(file.fd) != 0) give_up();
  }
  if (::rename(beside.c_str(), target.c_str()) != 0) give_up();
}

}  // namespace quantmap
