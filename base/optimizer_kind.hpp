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
  ftrl = 6,
  user = 7 ///< A server function of the program, which no kernel knows.
};
/// The last enumerator.
constexpr auto optimizer_kind_max = optimizer_kind::user;

} // namespace troupe
