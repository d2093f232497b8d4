// Keeps the sums of an own store.
#pragma once

#include "troupe/troupe.hpp"

#include <cstddef>
#include <memory>

namespace count_batches {

/// Returns a keeper of so many sums. It subtracts gradients, as sgd at rate 1 does.
std::unique_ptr<troupe::keeper> make_keeper(std::size_t elements);
/// Returns one with a mistake: it loads no checkpoint.
std::unique_ptr<troupe::keeper> make_forgetful_keeper(std::size_t elements);

} // namespace count_batches
