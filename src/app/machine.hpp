// The machine a result was taken on, in one line: processor, threads, whether it multiplies BF16.
#pragma once

#include <string>

namespace quantmap {

std::string machine();

}  // namespace quantmap
