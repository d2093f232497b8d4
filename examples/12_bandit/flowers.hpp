// The flowers of the bandit: Fisher's irises (1936) from a file, or drawn ones that are like them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bandit {

constexpr std::size_t kinds = 3;
/// A constant, 4 lengths, and their 10 products.
constexpr std::size_t features = 15;

struct flower {
  std::array<float, features> seen{};
  std::uint32_t kind = 0;
};
using flowers = std::vector<flower>;

/// Returns the file that `data` names; empty if it names none.
std::string file_of(const std::string& data);
/// Reads "iris:FILE", or draws 150 flowers for "drawn". Throws std::runtime_error with one line.
std::shared_ptr<const flowers> load_flowers(const std::string& data);

} // namespace bandit
