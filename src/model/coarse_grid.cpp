#include "model/coarse_grid.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "model/architecture.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kRowsLookedAt = 32;  // of each Linear
constexpr int kLayersLookedAt = 4;
constexpr double kShare = 0.98;  // a few blocks may be kept in another type

// A grid of b bits shows in blocks of at least twice 2^b values; free BF16 weights take nearly as many values
// as a block has. From the finest claim to the coarsest.
struct Candidate {
  int bits;
  std::int64_t block;
};
constexpr std::array<Candidate, 8> kCandidates = {
    {{2, 16}, {2, 32}, {3, 32}, {3, 64}, {4, 32}, {4, 64}, {4, 128}, {5, 64}}};

}  // namespace

int distinct_values(const float* x, std::int64_t count) {
  std::vector<float> sorted(x, x + count);
  std::sort(sorted.begin(), sorted.end());
  return static_cast<int>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

std::optional<CoarseGrid> find_coarse_grid(const Checkpoint& checkpoint) {
  const ModelConfig& c = checkpoint.config();
  struct Tally {
    std::int64_t blocks = 0, fitting = 0;
    int levels = 0;
  };
  std::array<Tally, kCandidates.size()> tallies;
  std::vector<float> row;
  const int step = std::max(1, c.layers / kLayersLookedAt);
  for (int layer = 0; layer < c.layers; layer += step)
    for (const LinearId id : kLayerLinears) {
      const LinearShape shape = linear_shape(c, id);
      row.resize(static_cast<std::size_t>(shape.in));
      const std::int64_t row_step = std::max<std::int64_t>(1, shape.out / kRowsLookedAt);
      for (std::int64_t r = 0; r < shape.out; r += row_step) {
        checkpoint.read(linear_name(layer, id) + ".weight", r, r + 1, row.data());
        for (std::size_t i = 0; i < kCandidates.size(); ++i) {
          const auto [bits, block] = kCandidates[i];
          for (std::int64_t begin = 0; begin + block <= shape.in; begin += block) {
            const int levels = distinct_values(row.data() + begin, block);
            ++tallies[i].blocks;
            if (levels <= 1 << bits) {
              ++tallies[i].fitting;
              tallies[i].levels = std::max(tallies[i].levels, levels);
            }
          }
        }
      }
    }
  // The fewest bits win, and among them the longest block.
  std::optional<CoarseGrid> found;
  for (std::size_t i = 0; i < kCandidates.size(); ++i) {
    const Tally& tally = tallies[i];
    if (tally.blocks == 0) continue;
    const double share = static_cast<double>(tally.fitting) / static_cast<double>(tally.blocks);
    if (share < kShare || tally.levels < 2) continue;
    if (!found || kCandidates[i].bits < found->bits ||
        (kCandidates[i].bits == found->bits && kCandidates[i].block > found->block))
      found = CoarseGrid{tally.levels, kCandidates[i].bits, kCandidates[i].block, share, tally.blocks};
  }
  return found;
}

}  // namespace quantmap
