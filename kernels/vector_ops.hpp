// Whole-vector arithmetic that shards and workers share.
//
// Shapes:       spans of one call have equal lengths, which may be 0 and need no multiple.
// Determinism:  bit-identical on every CPU target. Reductions run over 16 virtual lanes, element i
//               in lane i mod 16, combined lane 0 + lane 8, ... pairwise in one fixed tree.
// Cost:         one pass over each span; no allocation.
#pragma once

#include <cstddef>
#include <span>

namespace troupe::kernels {

/// sum[i] += x[i]. No overlap. Max error: 0.5 ulp, one rounding.
void add(std::span<float> sum, std::span<const float> x);
/// Sum of x[i]^2, in float64 lanes. Max error: n * 2^-53 relative.
double squared_norm(std::span<const float> x);
/// Index of the first element that is NaN or infinite; x.size() where there is none.
std::size_t first_non_finite(std::span<const float> x);

} // namespace troupe::kernels
