// Two stored runs compared: schemes by their full spelling, windows paired where both scored the same tokens.
#pragma once

#include <cstdint>
#include <string>

#include "reports/diff.hpp"
#include "store/database.hpp"

namespace quantmap {

// path: of the database, for errors. Error (input): a run that is not there, is not complete, or has no rows
// that the other one has too. seed: of the bootstrap.
RunDiff diff_runs(const Database& database, const std::string& path, std::int64_t first, std::int64_t second,
                  std::uint64_t seed);

}  // namespace quantmap
