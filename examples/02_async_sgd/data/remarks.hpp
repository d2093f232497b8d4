// Lines that tell what was read and what is doubtful about it.
#pragma once

#include "examples/02_async_sgd/data/labels.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace async_sgd {

/// "3 classes (setosa 50, versicolor 50, virginica 50)"; at most 10 are listed.
std::string describe_classes(std::span<const class_count> classes);

/// Adds "class 'x' has a single row in train.csv" where a class has.
void remark_single_rows(const std::string& path, std::span<const class_count> classes,
                        std::vector<std::string>& remarks);

/// "1 row", "2 rows".
std::string count_of(std::uint64_t count, const std::string& what);

} // namespace async_sgd
