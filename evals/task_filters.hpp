// What a template may do to a value: `{text|strip}`. One row each; docs/tasks.md lists the same rows.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quantmap {

struct NamedFilter {
  std::string_view name;
  std::string (*apply)(const std::string& text);
};
std::span<const NamedFilter> task_filters();

}  // namespace quantmap
