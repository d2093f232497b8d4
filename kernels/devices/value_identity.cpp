#include "kernels/devices/value_identity.hpp"

#include <algorithm>

namespace troupe {

bool value_identity::same_as(const value_identity& other) const {
  const auto is_same = [](const part& x, const part& y) {
    return x.at == y.at && !x.owner.owner_before(y.owner) && !y.owner.owner_before(x.owner);
  };
  return !empty() && std::ranges::equal(parts_, other.parts_, is_same);
}

} // namespace troupe
