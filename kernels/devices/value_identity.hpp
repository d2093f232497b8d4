// Whether two workers of a process were given the same values, without a look at these.
#pragma once

#include <memory>
#include <vector>

namespace troupe {

/// Says which values something was made of, by the memory that they were in: it neither keeps that
/// nor looks at it. Requires: nobody writes to such memory. Empty: nobody else has those values.
class value_identity {
public:
  void add(const std::shared_ptr<const float>& memory) { parts_.push_back({memory, memory.get()}); }

  bool empty() const { return parts_.empty(); }
  /// Never, where one is empty.
  bool same_as(const value_identity& other) const;

private:
  struct part {
    std::weak_ptr<const float> owner; ///< No other memory has this owner, not even later.
    const float* at;                  ///< Of one owner's memory, which part.
  };
  std::vector<part> parts_;
};

} // namespace troupe
