// What the capture takes of HDF5's C library: handles that close themselves, attributes, and its errors as
// one line. The library is not thread-safe: every call is made under an Hdf5Lock.
#pragma once

#include <H5Ipublic.h>

#include <cstdint>
#include <mutex>
#include <string>

namespace quantmap {

// One for the whole process; a thread may hold it more than once. Keeps the library from printing to stderr.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  static std::recursive_mutex& mutex();
  std::lock_guard<std::recursive_mutex> lock_;
};

// A file, group, dataset, type, …; move-only, closed when destroyed.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  ~Hdf5Handle() { reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(other.id_) { other.id_ = H5I_INVALID_HID; }
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = other.id_;
      other.id_ = H5I_INVALID_HID;
    }
    return *this;
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  void reset();
  hid_t id_ = H5I_INVALID_HID;
};

// The innermost message of the call that failed last on this thread.
std::string hdf5_reason();

// How values lie in a file: FP32, BF16 (a custom 16-bit float), FP16; all little-endian.
enum class StoreType : std::uint8_t { f32, bf16, f16 };
const char* store_name(StoreType type);
StoreType parse_store(std::string_view name);  // throws Error (usage)
inline std::int64_t store_bytes(StoreType type) { return type == StoreType::f32 ? 4 : 2; }
Hdf5Handle store_type(StoreType type);

// Attributes of an object: 64-bit integers and UTF-8 strings of any length. Writing replaces what was there;
// both throw Error (failed) naming `file`. Reading gives false where there is none of that name and kind.
void write_attribute(hid_t object, const std::string& name, std::int64_t value, const std::string& file);
void write_attribute(hid_t object, const std::string& name, const std::string& value,
                     const std::string& file);
bool read_attribute(hid_t object, const std::string& name, std::int64_t& value);
bool read_attribute(hid_t object, const std::string& name, std::string& value);

}  // namespace quantmap
