#include "capture/journaled_file.hpp"

#include <hdf5.h>

#include <cstring>

#include "capture/page_journal.hpp"
#include "core/error.hpp"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // 1.13 moved what drivers need
#endif

namespace quantmap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhat = "cannot write capture";

// HDF5's view of a PageJournal. It may open and close one several times while it opens a file.
struct Driver {
  H5FD_t base;  // first: HDF5 knows a driver by it
  PageJournal* bytes;
};

struct DriverInfo {
  PageJournal* bytes;
};

PageJournal& bytes_of(const H5FD_t* file) { return *reinterpret_cast<const Driver*>(file)->bytes; }

H5FD_t* driver_open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (!info) return nullptr;
  auto* driver = new Driver{};
  driver->bytes = info->bytes;
  return &driver->base;
}

herr_t driver_close(H5FD_t* file) {
  delete reinterpret_cast<Driver*>(file);
  return 0;
}

int driver_compare(const H5FD_t* a, const H5FD_t* b) {
  const PageJournal *left = &bytes_of(a), *right = &bytes_of(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

herr_t driver_query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t driver_end(const H5FD_t* file, H5FD_mem_t) { return bytes_of(file).end(); }

herr_t driver_set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  bytes_of(file).set_end(end);
  return 0;
}

haddr_t driver_size(const H5FD_t* file, H5FD_mem_t) { return bytes_of(file).size(); }

herr_t driver_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t count, void* out) {
  return bytes_of(file).read(at, count, static_cast<char*>(out)) ? 0 : -1;
}

herr_t driver_write(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t at, std::size_t count, const void* data) {
  const auto* bytes = static_cast<const char*>(data);
  const bool written = kind == H5FD_MEM_DRAW ? bytes_of(file).write_raw(at, count, bytes)
                                             : bytes_of(file).hold(at, count, bytes);
  return written ? 0 : -1;
}

hid_t driver_id() {
  static const hid_t id = [] {
    static H5FD_class_t row;
#ifdef H5FD_CLASS_VERSION
    row.version = H5FD_CLASS_VERSION;
    row.value = static_cast<H5FD_class_value_t>(513);  // 512 and up are for drivers that are not registered
#endif
    row.name = "quantmap_journal";
    row.maxaddr = static_cast<haddr_t>(INT64_MAX);
    row.fc_degree = H5F_CLOSE_STRONG;
    row.fapl_size = sizeof(DriverInfo);
    row.open = driver_open;
    row.close = driver_close;
    row.cmp = driver_compare;
    row.query = driver_query;
    row.get_eoa = driver_end;
    row.set_eoa = driver_set_end;
    row.get_eof = driver_size;
    row.read = driver_read;
    row.write = driver_write;
    // Raw data and metadata from free lists of their own: space that metadata gave up may be held in the
    // journal still, and raw data go to the file at once.
    constexpr H5FD_mem_t kMap[] = H5FD_FLMAP_DICHOTOMY;
    static_assert(sizeof kMap == sizeof row.fl_map);
    std::memcpy(row.fl_map, kMap, sizeof kMap);
    return H5FDregister(&row);
  }();
  return id;
}

}  // namespace

struct JournaledFile::State {
  PageJournal bytes;
  hid_t file = H5I_INVALID_HID;

  State(const fs::path& path, bool create) : bytes(path, create) {
    const Hdf5Lock lock;
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
    const DriverInfo info{&bytes};
    if (H5Pset_driver(access.get(), driver_id(), &info) < 0) fail(kWhat, bytes.name(), hdf5_reason());
    const char* name = bytes.name().c_str();
    file = create ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access.get())
                  : H5Fopen(name, H5F_ACC_RDWR, access.get());
    if (file < 0 && create) fail(kWhat, bytes.name(), hdf5_reason());
    if (file < 0)
      fail_input("bad capture", bytes.name(), "it does not open", "an HDF5 file, whole", hdf5_reason());
    if (!create) bytes.adopt();
  }
  ~State() {
    const Hdf5Lock lock;
    if (file >= 0) H5Fclose(file);  // what it flushes now is held, and dropped
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

JournaledFile::JournaledFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
JournaledFile::JournaledFile(JournaledFile&&) noexcept = default;
JournaledFile& JournaledFile::operator=(JournaledFile&&) noexcept = default;
JournaledFile::~JournaledFile() = default;

JournaledFile JournaledFile::create(const fs::path& path) {
  return JournaledFile(std::make_unique<State>(path, true));
}

JournaledFile JournaledFile::open(const fs::path& path) {
  return JournaledFile(std::make_unique<State>(path, false));
}

hid_t JournaledFile::id() const { return state_->file; }
const std::string& JournaledFile::name() const { return state_->bytes.name(); }

void JournaledFile::commit() {
  const Hdf5Lock lock;
  if (H5Fflush(state_->file, H5F_SCOPE_GLOBAL) < 0) fail(kWhat, name(), reason());
  state_->bytes.commit();
}

std::string JournaledFile::reason() const {
  return state_->bytes.error() != 0 ? std::strerror(state_->bytes.error()) : hdf5_reason();
}

}  // namespace quantmap
