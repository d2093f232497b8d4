// A replica's state on its way to another one: cut into parts, and put together again.
#pragma once

#include "serialization/chain.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// Which blocks and slabs these are, in order.
std::vector<held_version> versions_of(const std::vector<partition_image>& images);

/// The parts of a copy at `index`, at least one for each partition. Blocks and slabs that are among
/// `held` (ordered) are named without their content. No copy of the values.
std::vector<copy_part> cut_into_parts(epoch_id epoch, std::uint64_t index,
                                      const std::vector<partition_image>& images,
                                      const std::vector<held_version>& held);

/// What a joiner has of a copy so far.
///
/// Invariant: parts of one copy only; parts_.size() of them, from the first on.
class copy_in_progress {
public:
  /// `own`: the joiner's past state of the same generation; empty: none.
  copy_in_progress(epoch_id epoch, std::vector<partition_image> own)
      : epoch_(epoch), own_(std::move(own)) {}

  epoch_id epoch() const { return epoch_; }
  /// The request for the part that comes next.
  copy_request next() const;
  /// Whether it was the next part; another copy's first part takes the place of what there was.
  bool add(const copy_part& part);
  bool complete() const { return !parts_.empty() && parts_.size() == parts_.front().parts; }
  std::uint64_t index() const { return parts_.front().index; }
  /// The whole. None: it names something that the joiner does not have. Requires: complete().
  std::optional<std::vector<partition_image>> images() const;

private:
  epoch_id epoch_;
  std::vector<partition_image> own_;
  std::vector<copy_part> parts_;
};

} // namespace troupe
