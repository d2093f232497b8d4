// Tells whether two workers of a process were given the same values, without reading them.
#pragma once

#include <memory>
#include <vector>

namespace troupe {

/// Identifies values by the memory that held them. It neither keeps the memory alive nor reads it.
/// Requires: such memory is never written to. Empty: no other values are the same.
class value_identity {
public:
  void add(const std::shared_ptr<const float>& memory) { parts_.push_back({memory, memory.get()}); }

  bool empty() const { return parts_.empty(); }
  /// Returns false if one of them is empty.
  bool same_as(const value_identity& other) const;

private:
  struct part {
    std::weak_ptr<const float> owner; ///< Unique to its memory, even after the memory is freed.
    const float* at;                  ///< Position in the owner's memory.
  };
  std::vector<part> parts_;
};

} // namespace troupe
