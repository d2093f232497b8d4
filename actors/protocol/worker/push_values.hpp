// Tells the values of a push that a stage has made from those that it passes on.
#pragma once

#include "serialization/push_pull.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace troupe {

/// Calls each(table, values) for the dense values and the rows of a push.
template <class Each>
void for_each_values(const push_request& push, Each each) {
  for (const auto& x : push.pieces)
    each(x.where.table, std::span{x.values.get(), x.where.count});
  for (const auto& x : push.rows)
    each(x.where.table, std::span{x.values.get(), x.where.floats()});
}

/// The values of a push before a stage. It keeps their memory, so that no other values get the same
/// address.
class values_before {
public:
  /// Adds the values of a push.
  void add(const push_request& push);
  void add(const values_before& others) {
    values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  }
  bool have(const float* values) const {
    return std::ranges::find(values_, values, &float_ptr::get) != values_.end();
  }

private:
  std::vector<float_ptr> values_;
};

/// Sets push_request::gradient_norm to the L2 norm of the values if a stage has made one of them.
/// A norm of 0 stays: no table clips, or the gradient is zero.
void correct_norm(push_request& push, const values_before& before);

} // namespace troupe
