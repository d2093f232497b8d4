// Names the optimisers, for jobs and kernels. kernels/optimizer.hpp has the formulas.
#pragma once

#include <cstdint>

namespace troupe {

/// Numbers are wire format.
enum class optimizer_kind : std::uint8_t {
  sgd = 0,
  momentum = 1,
  adagrad = 2,
  adam = 3,
  nesterov = 4,
  adamw = 5,
  ftrl = 6
};
/// The last enumerator.
constexpr auto optimizer_kind_max = optimizer_kind::ftrl;

} // namespace troupe
