#include "map/model_map.hpp"

#include <stdexcept>

namespace quantmap {

std::string_view part_name(Part part) {
  switch (part) {
    case Part::embeddings:
      return "embeddings";
    case Part::lm_head:
      return "LM head";
    case Part::attention:
      return "attention";
    case Part::mlp:
      return "MLP";
    case Part::experts:
      return "experts";
    case Part::router:
      return "routers";
    case Part::norms:
      return "norms";
    case Part::other:
      return "other";
  }
  throw std::logic_error("part");
}

std::string MapModule::module_name(std::int64_t number) const {
  return numbered ? name + std::to_string(number) + suffix : name;
}

std::int64_t ModelMap::parameters() const {
  std::int64_t sum = 0;
  for (const MapModule& module : modules) sum += (module.values() + module.bias) * module.count;
  return sum;
}

std::int64_t ModelMap::active_parameters() const {
  std::int64_t sum = 0;
  for (const MapModule& module : modules) sum += (module.values() + module.bias) * module.active;
  return sum;
}

}  // namespace quantmap
