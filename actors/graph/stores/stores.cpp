// Lists the kinds of stores.
#include "actors/graph/nodes/store_rules.hpp"

#include "base/enumerators.hpp"

#include <array>

namespace troupe {

namespace {

constexpr std::array<const store_rules*, 4> kinds{&rules_of_servers, &rules_of_shared_memory,
                                                  &rules_of_all_reduce, &rules_of_own_store};

} // namespace

std::span<const store_rules* const> all_store_rules() { return kinds; }

const store_rules& rules_of(store_kind kind) { return *kinds[static_cast<std::size_t>(kind)]; }

} // namespace troupe
