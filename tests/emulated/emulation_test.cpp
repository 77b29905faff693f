// What the emulation promises, on kernels of a few lines: collectives give CUDA's values, and each mistake
// that hardware hides is an Error that names it.
#include "kernels/cuda.hpp"

#include <gmock/gmock.h>

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// What the Error says; empty if there was none.
template <class Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

__global__ void collectives(Global<int> out) {
  const int lane = static_cast<int>(threadIdx.x);
  int at = lane * 8;
  out[at++] = __shfl_xor_sync(~0U, lane, 5);
  out[at++] = __shfl_down_sync(~0U, lane, 3U);
  out[at++] = __shfl_up_sync(~0U, lane, 3U, 8);
  out[at++] = __shfl_sync(~0U, lane, 2, 16);
  out[at++] = static_cast<int>(__ballot_sync(~0U, lane % 3 == 0));
  out[at++] = __any_sync(~0U, lane == 31);
  out[at++] = __all_sync(~0U, lane < 31);
  // Half of a warp for itself.
  out[at] = lane < 16 ? __shfl_xor_sync(0xFFFFU, lane, 1) : -1;
}

TEST(Emulation, CollectivesGiveTheValuesOfCuda) {
  const Device<int> out(32 * 8);
  launch(collectives, 1, 32, 0, {}, out.data());
  const std::vector<int> got = out.host();
  for (int lane = 0; lane < 32; ++lane) {
    const int want[] = {lane ^ 5,
                        lane < 29 ? lane + 3 : lane,
                        lane % 8 >= 3 ? lane - 3 : lane,
                        lane / 16 * 16 + 2,
                        static_cast<int>(0x49249249U),
                        1,
                        0,
                        lane < 16 ? lane ^ 1 : -1};
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(got[static_cast<std::size_t>(lane * 8 + i)], want[i]) << lane << ", " << i;
  }
}

__global__ void where_am_i(Global<int> out) {
  const auto block = blockIdx.x + gridDim.x * blockIdx.y;
  const auto thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * 24 + thread] = static_cast<int>(block * 24 + thread);
}

TEST(Emulation, EveryThreadOfEveryBlockRunsOnce) {
  const Device<int> out(6 * 24);
  launch(where_am_i, emulation::dim3(3, 2), emulation::dim3(4, 3, 2), 0, {}, out.data());
  for (int i = 0; i < 6 * 24; ++i) EXPECT_EQ(out.host()[static_cast<std::size_t>(i)], i);
}

// Turns a block's values round through shared memory. `barrier`: as it must be.
__global__ void reverse(Global<int> values, bool barrier) {
  const Shared<int> turned = shared<int, 64, struct Turned>();
  const int t = static_cast<int>(threadIdx.x);
  turned[63 - t] = values[t];
  if (barrier) __syncthreads();
  values[t] = turned[t];
}

TEST(Emulation, OrderChangesNoResultOfACorrectKernel) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const emulation::ShuffledOrder order(seed);
    std::vector<int> values(64);
    for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = i;
    const Device<int> device(values);
    launch(reverse, 1, 64, 0, {}, device.data(), true);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(device.host()[static_cast<std::size_t>(i)], 63 - i);
  }
}

TEST(Emulation, MissingBarrierIsARaceOrAnUnwrittenValueInAnyOrder) {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const emulation::ShuffledOrder order(seed);
    const Device<int> device(std::vector<int>(64, 1));
    const std::string error = error_of([&] { launch(reverse, 1, 64, 0, {}, device.data(), false); });
    EXPECT_TRUE(error.find("read before it is written") != std::string::npos ||
                error.find("a race") != std::string::npos)
        << error;
  }
}

__global__ void barrier_for_some(int some) {
  if (static_cast<int>(threadIdx.x) < some) __syncthreads();
}
__global__ void barriers_apart() {
  if (threadIdx.x < 8) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void shuffle_for_some() {
  if (threadIdx.x < 31) __shfl_xor_sync(~0U, 1, 1);
}

TEST(Emulation, BarriersThatNotAllReachAreNamed) {
  EXPECT_THAT(error_of([] { launch(barrier_for_some, 2, 64, 0, {}, 63); }),
              HasSubstr("not reached by all: 63 of 64 threads wait there, 1 have ended"));
  EXPECT_EQ(error_of([] { launch(barrier_for_some, 2, 64, 0, {}, 64); }), "");
  EXPECT_THAT(error_of([] { launch(barriers_apart, 1, 64, 0, {}); }),
              HasSubstr("8 of 64 threads wait there"));
  EXPECT_THAT(error_of([] { launch(shuffle_for_some, 1, 32, 0, {}); }),
              HasSubstr("a warp's collective at emulation_test.cpp"));
}

__global__ void reads_at(Global<const float> x, Global<float> out, int i) { out[0] = x[i]; }
__global__ void shared_at(int i) {
  const Shared<float> small = shared<float, 4, struct Small>();
  small[i] = 1;
}
__global__ void dynamic_at(int count) {
  const Shared<float> values = dynamic_shared<float>(8, count);
  values[count - 1] = 1;
}

TEST(Emulation, IndicesOutsideOfMemoryAreNamed) {
  const Device<float> x(std::vector<float>(10, 1.0F)), out(1);
  for (const int i : {0, 9})
    EXPECT_EQ(error_of([&] { launch(reads_at, 1, 1, 0, {}, x.data(), out.data(), i); }), "");
  for (const int i : {-1, 10})
    EXPECT_THAT(error_of([&] { launch(reads_at, 1, 1, 0, {}, x.data(), out.data(), i); }),
                HasSubstr("index " + std::to_string(i) + " of 10 values of global memory, thread (0,0,0)"));
  EXPECT_EQ(error_of([] { launch(shared_at, 1, 1, 0, {}, 3); }), "");
  EXPECT_THAT(error_of([] { launch(shared_at, 1, 1, 0, {}, 4); }),
              HasSubstr("index 4 of 4 values of shared"));
  EXPECT_EQ(error_of([] { launch(dynamic_at, 1, 1, 24, {}, 4); }), "");
  EXPECT_THAT(error_of([] { launch(dynamic_at, 1, 1, 24, {}, 5); }),
              HasSubstr("bytes 8 to 28 of dynamic shared memory, the launch has 24"));
  const float on_host = 1;
  EXPECT_THAT(error_of([&] { launch(reads_at, 1, 1, 0, {}, &on_host, out.data(), 0); }),
              HasSubstr("not device memory"));
  EXPECT_THAT(error_of([&] { launch(shared_at, 1, 1025, 0, {}, 0); }), HasSubstr("1025 threads"));
}

// Lane 0 writes, its warp reads: a __syncwarp orders them, and orders nothing for another warp.
__global__ void warp_hand_over(bool synchronized, int reader) {
  const Shared<int> value = shared<int, 1, struct Handed>();
  if (threadIdx.x == 0) value[0] = 1;
  if (synchronized) __syncwarp();
  if (static_cast<int>(threadIdx.x) == reader) (void)static_cast<int>(value[0]);
}

TEST(Emulation, SyncwarpOrdersItsOwnWarpOnly) {
  EXPECT_EQ(error_of([] { launch(warp_hand_over, 1, 64, 0, {}, true, 5); }), "");
  EXPECT_THAT(error_of([] { launch(warp_hand_over, 1, 64, 0, {}, false, 5); }), HasSubstr("a race"));
  EXPECT_THAT(error_of([] { launch(warp_hand_over, 1, 64, 0, {}, true, 40); }), HasSubstr("a race"));
}

TEST(Emulation, NewDeviceMemoryReadsAsNan) {
  const Device<float> fresh(3);
  for (const float value : fresh.host()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace quantmap
