#include "app/outdated.hpp"

#include <fmt/format.h>

#include "store/database.hpp"

namespace quantmap {

void bring_up_to_date(const CommonOptions& common) {
  const std::filesystem::path kept = migrate_database(common.db);
  if (!kept.empty() && !common.quiet)
    tell(fmt::format("quantmap: {} had an older schema and was migrated; the old file is kept as {}\n",
                     common.db, kept.string()));
}

}  // namespace quantmap
