// Defines the memory that GPU reductions need on the device beside their operands. The reductions
// themselves are in reduce.inl.hpp. All-reduce and the reducer of gradients do not use this.
#pragma once

#include <cstddef>

namespace troupe::kernels {

/// Partial values of a reduction: enough to keep the largest device busy.
constexpr std::size_t partials_max = 1024;

} // namespace troupe::kernels
