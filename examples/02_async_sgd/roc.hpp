// Measures how well a score separates two classes.
#pragma once

#include <cstdint>
#include <span>

namespace async_sgd {

/// Returns the probability that a random sample of class 1 has a higher score than one of class 0;
/// a tie counts half (the Mann-Whitney statistic). Returns 1/2 if a class is missing or a score is
/// NaN. Cost: one sort.
double area_under_roc(std::span<const float> scores, std::span<const std::uint32_t> labels);

} // namespace async_sgd
