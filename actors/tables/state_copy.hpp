// Cuts a replica's state into parts for another replica, and joins the parts there.
#pragma once

#include "serialization/replication.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// Returns the versions of these blocks and slabs, in order.
std::vector<held_version> versions_of(const std::vector<partition_image>& images);

/// Returns the bytes of its blocks and slabs; those without content do not count.
std::uint64_t content_bytes(const partition_image& image);

/// Size of a part, and parts requested ahead of the received ones: enough to keep a link busy.
constexpr std::uint64_t copy_part_bytes = std::uint64_t{1} << 20;
constexpr std::uint32_t copy_parts_ahead = 4;

/// Returns the parts of a copy, at least one for each partition; `like` gives their common fields.
/// Blocks and slabs that are among `held` (ordered) are named without their content. No copy of the
/// values.
std::vector<copy_part> cut_into_parts(const copy_part& like,
                                      const std::vector<partition_image>& images,
                                      const std::vector<held_version>& held);

/// The parts of a copy that a joiner has received. Takes parts in order only: a lost part is
/// requested again.
///
/// Invariant: all parts are of one copy, and are its first parts_.size() ones.
class copy_in_progress {
public:
  /// `own`: blocks and slabs that the joiner has from states of the same generation.
  copy_in_progress(config_id config, std::vector<partition_image> own)
      : epoch_(config), own_(std::move(own)) {}

  config_id config() const { return epoch_; }
  /// Returns requests for parts that may be requested now; at first for part 0 alone.
  std::vector<copy_request> ask();
  /// Marks requested parts that have not come as lost.
  void ask_again() { asked_ = static_cast<std::uint32_t>(parts_.size()); }
  /// Takes a part. Returns whether it was the next one. A part of another copy drops the present
  /// parts.
  bool add(const copy_part& part);
  bool complete() const { return !parts_.empty() && parts_.size() == parts_.front().parts; }
  /// Returns the first part. Requires: a part came.
  const copy_part& first() const { return parts_.front(); }
  /// Returns the bytes of content that came with the parts.
  std::uint64_t bytes() const;
  /// Returns all that the joiner has, of any state: the next copy need not send it again.
  std::vector<partition_image> give_up() &&;
  /// Returns the whole state; nullopt if it names a block or slab that the joiner lacks. Requires:
  /// complete().
  std::optional<std::vector<partition_image>> images() const;

private:
  config_id epoch_;
  std::vector<partition_image> own_;
  std::vector<copy_part> parts_;
  std::uint32_t asked_ = 0; ///< Parts asked for, from the first on.
};

} // namespace troupe
