#include "actors/protocol/worker/push_values.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace troupe {

void values_before::add(const push_request& push) {
  for (const auto& x : push.pieces)
    values_.push_back(x.values);
  for (const auto& x : push.rows)
    values_.push_back(x.values);
}

void correct_norm(push_request& push, const values_before& before) {
  if (push.gradient_norm == 0.0f)
    return;
  bool any_made = false;
  std::array<double, 8> squares{}; // So that additions do not wait for each other.
  for_each_values(push, [&](table_id, std::span<const float> values) {
    any_made |= !before.have(values.data());
    for (std::size_t i = 0; values.data() != nullptr && i < values.size(); ++i)
      squares[i % squares.size()] += static_cast<double>(values[i]) * values[i];
  });
  if (any_made)
    push.gradient_norm =
      static_cast<float>(std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)));
}

} // namespace troupe
