// The messages of a lane: one sender's parcels to one receiver of a channel, as plain values.
// docs/design/channels.md follows one parcel.
#pragma once

#include "base/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

constexpr std::size_t parcel_head_bytes_max = 4096;
constexpr std::size_t parcel_tensors_max = 256;
/// All tensors of a parcel together have at most 1 GiB.
constexpr std::uint64_t parcel_floats_max = std::uint64_t{1} << 28;
/// While so many bytes of parcels are under way on a lane, its sender gets no credit.
constexpr std::uint64_t lane_bytes_max = std::uint64_t{256} << 20;
constexpr std::uint32_t channel_window_max = 1024, channel_window_default = 8;

/// Values of a parcel, f32[count].
struct parcel_tensor {
  float_ptr values;
  std::uint64_t count = 0;
};

/// The first message of a lane's link, from the sender.
struct channel_open {
  std::string channel;       ///< Its name, "players>learners".
  std::uint64_t session = 0; ///< Grows with each session of this lane and sender.
  std::string head;          ///< The type of the heads; both ends must have the same one ...
  std::uint32_t window = 0;  ///< ... and the same window.

  bool operator==(const channel_open&) const = default;
};

/// One parcel, from the sender.
struct parcel_message {
  std::uint64_t session = 0;
  std::uint64_t sequence = 0;  ///< From 1 on, without gaps, in each session.
  std::vector<std::byte> head; ///< The bytes of a trivially copyable value.
  std::vector<parcel_tensor> tensors;
};

/// Credit, from the receiver: how many parcels of the session were taken. A later message replaces
/// an earlier one. The first one, with 0, accepts the session.
struct parcels_taken {
  std::uint64_t session = 0;
  std::uint64_t count = 0;

  bool operator==(const parcels_taken&) const = default;
};

using channel_message = std::variant<channel_open, parcel_message, parcels_taken>;

} // namespace troupe
