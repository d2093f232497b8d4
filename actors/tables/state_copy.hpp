// A replica's state on its way to another one: cut into parts, and put together again.
#pragma once

#include "serialization/replication.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// Which blocks and slabs these are, in order.
std::vector<held_version> versions_of(const std::vector<partition_image>& images);

/// The content of its blocks and slabs; none of those that are only named.
std::uint64_t content_bytes(const partition_image& image);

/// What travels at a time, and what is asked for ahead of what came: enough to keep a link busy.
constexpr std::uint64_t copy_part_bytes = std::uint64_t{1} << 20;
constexpr std::uint32_t copy_parts_ahead = 4;

/// The parts of a copy, at least one for each partition; `like` says what it is of. Blocks and
/// slabs that are among `held` (ordered) are named without their content. No copy of the values.
std::vector<copy_part> cut_into_parts(const copy_part& like,
                                      const std::vector<partition_image>& images,
                                      const std::vector<held_version>& held);

/// What a joiner has of a copy so far. Takes parts in order only: whoever lost one asks again.
///
/// Invariant: parts of one copy only; parts_.size() of them, from the first on.
class copy_in_progress {
public:
  /// `own`: what the joiner has of states of the same generation.
  copy_in_progress(config_id config, std::vector<partition_image> own)
      : epoch_(config), own_(std::move(own)) {}

  config_id config() const { return epoch_; }
  /// Requests for parts that were not asked for and may be now: at first for part 0 alone.
  std::vector<copy_request> ask();
  /// What was asked for and has not come is lost.
  void ask_again() { asked_ = static_cast<std::uint32_t>(parts_.size()); }
  /// Whether it was the next part; another copy's first part takes the place of what there was.
  bool add(const copy_part& part);
  bool complete() const { return !parts_.empty() && parts_.size() == parts_.front().parts; }
  /// What it is of. Requires: a part came.
  const copy_part& first() const { return parts_.front(); }
  /// Content that came with its parts.
  std::uint64_t bytes() const;
  /// What it has, of whatever state: the next copy need not bring it again.
  std::vector<partition_image> give_up() &&;
  /// The whole. None: it names something that the joiner does not have. Requires: complete().
  std::optional<std::vector<partition_image>> images() const;

private:
  config_id epoch_;
  std::vector<partition_image> own_;
  std::vector<copy_part> parts_;
  std::uint32_t asked_ = 0; ///< Parts asked for, from the first on.
};

} // namespace troupe
