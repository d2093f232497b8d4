// Lists the kinds of stores.
#include "actors/graph/nodes/store_rules.hpp"
#include "base/enumerators.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace troupe {

namespace {

constexpr std::array kinds{&rules_of_servers, &rules_of_shared_memory, &rules_of_all_reduce,
                           &rules_of_own_store, &rules_of_gossip};
static_assert(!is_enumerator<static_cast<store_kind>(kinds.size())>()); // The list lacks none.

} // namespace

std::span<const store_rules* const> all_store_rules() { return kinds; }

const store_rules& rules_of(store_kind kind) {
  const auto* const found = std::ranges::find(kinds, kind, &store_rules::kind);
  assert(found != kinds.end()); // A kind that the list lacks.
  return **found;
}

} // namespace troupe
