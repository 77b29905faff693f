// Device memory of the emulation: see cuda.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/emulation/grid.hpp"

namespace quantmap::emulation {

// Global memory. New memory is all ones (a float reads as NaN), so that what nobody wrote shows.
void* allocate(std::int64_t bytes);
void release(void* memory);

struct Extent {
  std::byte* begin = nullptr;
  std::int64_t bytes = 0;
};
// The allocation that a pointer lies in (or one past which it ends); an Error where there is none.
Extent allocation_of(const void* pointer);

template <class T>
class Global {
 public:
  Global() = default;
  Global(T* pointer) {  // NOLINT(google-explicit-constructor): as the pointer that it stands for
    if (!pointer) return;
    const Extent extent = allocation_of(pointer);
    data_ = pointer;
    const std::int64_t before = reinterpret_cast<const std::byte*>(pointer) - extent.begin;
    first_ = -before / kSize;
    end_ = (extent.bytes - before) / kSize;
  }
  Global(const Global<std::remove_const_t<T>>& other)  // NOLINT(google-explicit-constructor)
      requires std::is_const_v<T>
      : data_(other.data_), first_(other.first_), end_(other.end_) {}
  Global(const Global&) = default;
  Global& operator=(const Global&) = default;

  T& operator[](std::int64_t i) const {
    if (i < first_ || i >= end_) fail_in_kernel("global memory", i, end_);
    return data_[i];
  }
  Global operator+(std::int64_t by) const {
    Global moved = *this;
    moved.data_ += by;
    moved.first_ -= by;
    moved.end_ -= by;
    return moved;
  }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend class Global<const T>;
  static constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  T* data_ = nullptr;
  std::int64_t first_ = 0, end_ = 0;  // indices that lie in the allocation
};

// One value's history in shared memory.
struct Touched {
  Moment written, read, read_too;  // read_too: by another thread than `read`
};
struct SharedExtent {
  std::byte* data = nullptr;
  Touched* touched = nullptr;  // one for each byte; a value's is that of its first
  std::int64_t bytes = 0;
};
SharedExtent shared_memory(const void* key, std::int64_t bytes, std::int64_t alignment);
SharedExtent dynamic_shared_memory(std::int64_t offset, std::int64_t bytes);
void note_read(Touched& touched, std::int64_t index);
void note_write(Touched& touched, std::int64_t index);

template <class T>
class SharedValue {
 public:
  SharedValue(T& value, Touched& touched, std::int64_t index)
      : value_(value), touched_(touched), index_(index) {}
  SharedValue(const SharedValue&) = default;
  operator T() const {  // NOLINT(google-explicit-constructor): it reads as the value
    note_read(touched_, index_);
    return value_;
  }
  const SharedValue& operator=(T value) const {  // NOLINT(misc-unconventional-assign-operator): a reference
    note_write(touched_, index_);
    value_ = value;
    return *this;
  }
  SharedValue& operator=(const SharedValue& other) {
    *this = static_cast<T>(other);
    return *this;
  }
  const SharedValue& operator+=(T value) const { return *this = static_cast<T>(*this) + value; }
  const SharedValue& operator*=(T value) const { return *this = static_cast<T>(*this) * value; }

 private:
  T& value_;
  Touched& touched_;
  std::int64_t index_;
};

template <class T>
class Shared {
 public:
  explicit Shared(const SharedExtent& extent)
      : data_(reinterpret_cast<T*>(extent.data)),
        touched_(extent.touched),
        count_(extent.bytes / static_cast<std::int64_t>(sizeof(T))) {}
  SharedValue<T> operator[](std::int64_t i) const {
    if (i < 0 || i >= count_) fail_in_kernel("shared memory", i, count_);
    return {data_[i], touched_[i * static_cast<std::int64_t>(sizeof(T))], i};
  }
  Shared operator+(std::int64_t by) const {
    if (by < 0 || by > count_) fail_in_kernel("shared memory", by, count_);
    Shared moved = *this;
    moved.data_ += by;
    moved.touched_ += by * static_cast<std::int64_t>(sizeof(T));
    moved.count_ -= by;
    return moved;
  }

 private:
  T* data_;
  Touched* touched_;
  std::int64_t count_;
};

}  // namespace quantmap::emulation
