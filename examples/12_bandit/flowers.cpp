#include "examples/12_bandit/flowers.hpp"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

namespace bandit {

namespace {

constexpr std::size_t lengths = 4;
using sizes = std::array<float, lengths>;

/// Means and spreads of the kinds, cm, by Fisher's table.
constexpr std::array<sizes, kinds> means{
  {{5.0f, 3.4f, 1.5f, 0.2f}, {5.9f, 2.8f, 4.3f, 1.3f}, {6.6f, 3.0f, 5.6f, 2.0f}}};
constexpr sizes spreads{0.4f, 0.3f, 0.3f, 0.2f};

flower flower_of(const sizes& cm, std::uint32_t kind) {
  flower made{.kind = kind};
  std::size_t next = 0;
  made.seen[next++] = 1;
  sizes scaled{};
  for (std::size_t i = 0; i < lengths; ++i)
    made.seen[next++] = scaled[i] = (cm[i] - means[1][i]) / (2 * spreads[i]);
  for (std::size_t i = 0; i < lengths; ++i)
    for (std::size_t j = i; j < lengths; ++j)
      made.seen[next++] = scaled[i] * scaled[j] / 4;
  return made;
}

flowers drawn() {
  flowers all;
  std::mt19937 random{1936};
  std::normal_distribution<float> normal;
  for (std::uint32_t i = 0; i < 150; ++i) {
    const auto kind = i / 50;
    sizes cm{};
    for (std::size_t j = 0; j < lengths; ++j)
      cm[j] = means[kind][j] + spreads[j] * normal(random);
    all.push_back(flower_of(cm, kind));
  }
  return all;
}

flowers read(const std::string& file) {
  std::ifstream in{file};
  if (!in)
    throw std::runtime_error{"cannot read " + file};
  const std::vector<std::string> names{"Iris-setosa", "Iris-versicolor", "Iris-virginica"};
  flowers all;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty())
      continue;
    std::istringstream fields{line};
    sizes cm{};
    char comma = 0;
    std::string name;
    for (auto& each : cm)
      fields >> each >> comma;
    fields >> name;
    std::uint32_t kind = 0;
    while (kind < kinds && names[kind] != name)
      ++kind;
    if (!fields || kind == kinds)
      throw std::runtime_error{file + ", line " + std::to_string(number)
                               + ": not four lengths and a name, such as 5.1,3.5,1.4,0.2,"
                                 "Iris-setosa"};
    all.push_back(flower_of(cm, kind));
  }
  if (all.empty())
    throw std::runtime_error{file + " has no flowers"};
  return all;
}

} // namespace

std::string file_of(const std::string& data) {
  return data.starts_with("iris:") ? data.substr(5) : "";
}

std::shared_ptr<const flowers> load_flowers(const std::string& data) {
  if (data == "drawn")
    return std::make_shared<const flowers>(drawn());
  if (const auto file = file_of(data); !file.empty())
    return std::make_shared<const flowers>(read(file));
  throw std::runtime_error{"--data: '" + data + "' is not drawn or iris:FILE"};
}

} // namespace bandit
