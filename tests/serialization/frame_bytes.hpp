// Decodes frames from memory of exactly their size, so that a sanitizer reports every read past
// their end.
#pragma once

#include "serialization/wire.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace troupe::test {

/// Returns the first request of a message, which must be a list of requests.
inline const request_message& only_request(const message& what) {
  return std::get<request_list>(what).items.at(0);
}
inline const reply_message& only_reply(const message& what) {
  return std::get<reply_message>(std::get<answer_list>(what).items.at(0));
}

/// Returns the bytes that are sent for a frame.
inline std::vector<std::byte> flatten(const wire::frame& sent) {
  auto bytes = sent.head;
  for (const auto& part : sent.body)
    bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
  return bytes;
}

/// Returns a copy of exactly this size, aligned to 64 bytes.
inline std::shared_ptr<std::byte> aligned_copy(std::span<const std::byte> bytes) {
  constexpr std::align_val_t alignment{64};
  auto* memory =
    static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes.size(), 1), alignment));
  std::copy(bytes.begin(), bytes.end(), memory);
  return {memory, [](std::byte* x) { ::operator delete (x, std::align_val_t{64}); }};
}

/// Decodes a message from copies of these segments.
inline result<message> decode_segments(std::span<const std::byte> head,
                                       std::span<const std::byte> body) {
  const auto head_copy = aligned_copy(head);
  std::shared_ptr<const std::byte> body_copy;
  if (!body.empty())
    body_copy = aligned_copy(body);
  return wire::decode({head_copy.get(), head.size()}, body_copy, body.size());
}

/// Decodes a whole frame, as a transport does.
inline result<message> decode_frame(std::span<const std::byte> bytes) {
  if (bytes.size() < wire::prefix_bytes)
    return {errc::malformed, "no prefix"};
  const auto sizes = wire::decode_prefix(bytes.first<wire::prefix_bytes>());
  if (!sizes)
    return sizes.error();
  const auto rest = bytes.subspan(wire::prefix_bytes);
  if (rest.size() != sizes->head_bytes + sizes->body_bytes)
    return {errc::malformed, "another length"};
  return decode_segments(rest.first(sizes->head_bytes), rest.subspan(sizes->head_bytes));
}

} // namespace troupe::test
