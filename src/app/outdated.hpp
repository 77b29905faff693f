// Databases that an older quantmap wrote, for commands that only read.
#pragma once

#include "app/options.hpp"

namespace quantmap {

// Migrates the database to today's schema where it is older, and says where the old file is kept.
void bring_up_to_date(const CommonOptions& common);

}  // namespace quantmap
