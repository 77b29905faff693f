// Device memory and devices for the parity tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "kernels/device_kernels.hpp"
#include "kernels/emulation/grid.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/inputs.hpp"

// The kernels with a mistake built in (kernels/cuda.hpp).
namespace quantmap {
namespace off_by_one {
const DeviceKernels& kernels();
}
namespace missing_barrier {
const DeviceKernels& kernels();
}
namespace wrong_lane {
const DeviceKernels& kernels();
}
}  // namespace quantmap

namespace quantmap::testing {

// A copy of host values in the emulation's device memory, of exactly that size.
template <class T>
class Device {
 public:
  explicit Device(std::span<const T> values) : Device(static_cast<std::int64_t>(values.size())) {
    std::memcpy(data_, values.data(), values.size_bytes());
  }
  explicit Device(const std::vector<T>& values) : Device(std::span<const T>(values)) {}
  explicit Device(std::int64_t count)
      : count_(count),
        data_(static_cast<T*>(emulation::allocate(count * static_cast<std::int64_t>(sizeof(T))))) {}
  ~Device() { emulation::release(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const { return {data_, data_ + count_}; }

 private:
  std::int64_t count_;
  T* data_;
};

// "heavy-tailed" -> "heavy_tailed", for names of tests.
inline std::string as_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

// NaN and both infinities among normal values.
inline constexpr InputClass kNonfinite = {"non-finite", [](float n, double, std::int64_t i) {
                                            return i % 41 == 3   ? std::nanf("")
                                                   : i % 41 == 7 ? std::numeric_limits<float>::infinity()
                                                   : i % 83 == 9 ? -std::numeric_limits<float>::infinity()
                                                                 : n;
                                          }};
inline constexpr InputClass kAllInputs[] = {kZeros, kNormal, kHeavyTailed, kOutlier, kDenormal, kNonfinite};

// NaN where the reference has NaN, the same infinity, else within the bound.
template <typename Bound>
void expect_like(std::span<const float> got, std::span<const float> want, const std::string& what,
                 const Bound& bound) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool alike = std::isnan(want[i])   ? std::isnan(got[i])
                       : std::isinf(want[i]) ? got[i] == want[i]
                                             : std::abs(double{got[i]} - double{want[i]}) <= bound(i);
    ASSERT_TRUE(alike) << what << ", value " << i << ": " << got[i] << " instead of " << want[i] << ", "
                       << bound(i) << " allowed";
  }
}

// The same bits, or NaN in both (whose payload is the processor's).
inline void expect_bits(std::span<const float> got, std::span<const float> want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : same_bits({&got[i], 1}, {&want[i], 1}))
        << what << ", value " << i << ": " << got[i] << " instead of " << want[i];
}

}  // namespace quantmap::testing
