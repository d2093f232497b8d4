// Keeps the sums of an own store.
#pragma once

#include "troupe/troupe.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace count_batches {

/// Returns a keeper with this number of sums. It subtracts gradients, as sgd at rate 1 does.
std::unique_ptr<troupe::keeper> make_keeper(std::size_t elements);
/// Returns a keeper with a mistake: "bad-apply", "bad-save" or "bad-load".
std::unique_ptr<troupe::keeper> make_bad_keeper(std::size_t elements, std::string mistake);

} // namespace count_batches
