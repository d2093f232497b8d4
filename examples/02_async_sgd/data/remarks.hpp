// Writes remarks on the content of data files and on their doubtful parts.
#pragma once

#include "examples/02_async_sgd/data/labels.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace async_sgd {

/// Returns "3 classes (setosa 50, versicolor 50, virginica 50)", with at most 10 classes.
std::string describe_classes(std::span<const class_count> classes);

/// Adds "class 'x' has a single row in train.csv" for each such class.
void remark_single_rows(const std::string& path, std::span<const class_count> classes,
                        std::vector<std::string>& remarks);

/// Returns "1 row" or "2 rows".
std::string count_of(std::uint64_t count, const std::string& what);

} // namespace async_sgd
