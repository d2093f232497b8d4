// Turns messages into bytes. A frame is a standard Cap'n Proto stream of two segments. The first is
// the message; the second is its tensors, which are sent and received in place without a copy.
//
//   u32  segments - 1 (always 1)        little-endian, as in Cap'n Proto's stream framing
//   u32  words of segment 0
//   u32  words of segment 1
//   u32  0 (padding)
//        segment 0: an Envelope (serialization/*.capnp)
//        segment 1: keys (u64) and values (f32) of pieces, rows and tensors, see push_pull.capnp;
//                   zero-padded to 8 bytes
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::wire {

/// Changes whenever an older peer would misread a message.
constexpr std::uint32_t protocol_version = 11;
/// Grows whenever an older program would misread a job's file. Files from version 1 on are read.
constexpr std::uint32_t job_format_version = 2;

constexpr std::size_t prefix_bytes = 16;
constexpr std::size_t head_bytes_max = std::size_t{16} << 20; ///< Segment 0.
constexpr std::size_t body_bytes_max = std::size_t{1} << 30;  ///< Segment 1.
constexpr std::size_t hello_bytes_max = 4096;                 ///< Whole first frame of a peer.
constexpr std::size_t list_items_max = 64; ///< Items of a request_list or an answer_list.

/// A message ready to be sent: the bytes to gather, in order.
struct frame {
  /// Prefix and segment 0; a short segment 1 too.
  std::vector<std::byte> head;
  /// Segment 1, unless it is in `head`. It is borrowed from the message's pieces, kept alive by
  /// them.
  struct part {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  std::vector<part> body;

  std::size_t size_bytes() const;
};

frame encode(const message& what);

/// Sizes of the two segments that follow a prefix.
struct sizes {
  std::size_t head_bytes = 0;
  std::size_t body_bytes = 0;
};

/// Reads a prefix. Errors: malformed if it is not Troupe's or passes a limit.
result<sizes> decode_prefix(std::span<const std::byte, prefix_bytes> prefix);

/// Reads a message. `head`: segment 0, aligned to 8. `body`: segment 1, aligned to 64, shared by
/// the pieces of the returned message; may be null if empty. Never throws; checks every length.
/// Errors: malformed, version_mismatch. Every message carries its protocol version.
result<message> decode(std::span<const std::byte> head, std::shared_ptr<const std::byte> body,
                       std::size_t body_bytes);

/// Returns a job as bytes for files: a standard Cap'n Proto stream of one segment.
std::vector<std::byte> encode_job(const job_spec& job);
/// Reads a job; the returned job passes validate(). The bytes need no alignment. Errors: malformed,
/// version_mismatch.
result<job_spec> decode_job(std::span<const std::byte> bytes);

} // namespace troupe::wire
