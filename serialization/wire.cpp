// Encodes and decodes frames: the prefix, the envelope, and the message in it.
#include "serialization/wire.hpp"

#include "serialization/detail/parts.hpp"
#include "serialization/detail/segment_builder.hpp"
#include "serialization/envelope.capnp.h"

#include <capnp/message.h>

#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace troupe::wire {

namespace {

// Prefixes, tensors and Cap'n Proto are read and written as they lie in memory.
static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

constexpr std::uint32_t magic = 0x45505254; // "TRPE"
/// Root pointer and the envelope's data section of two words.
constexpr std::size_t head_bytes_min = 24;
/// A body up to this size is copied behind the head, which costs less than gathering its parts.
constexpr std::size_t copied_body_bytes_max = 1024;

/// Returns the words of segment 0 that suffice for most messages of a kind.
struct word_guess {
  std::size_t operator()(const request_list& x) const {
    std::size_t words = 16;
    for (const auto& each : x.items) {
      const auto& [push, pull, chain] = each.what;
      words += 5 + each.keys.size() + each.forgotten.size();
      if (push)
        words += 23 + 4 * (push->pieces.size() + push->rows.size()) + push->tables.size()
                 + 5 * (push->packed.size() + push->others.size());
      if (pull)
        words += 14 + 4 * (pull->ranges.size() + pull->rows.size()) + 5 * pull->others.size();
    }
    return words;
  }
  std::size_t operator()(const answer_list& x) const {
    std::size_t words = 16;
    for (const auto& each : x.items) {
      const auto* came = std::get_if<reply_message>(&each);
      words += 10;
      if (came != nullptr && came->what.pulled) {
        const auto& [version, pieces, rows, unchanged, packed] = *came->what.pulled;
        words += 8 + 4 * (pieces.size() + rows.size() + unchanged.size()) + 5 * packed.size();
      }
    }
    return words;
  }
  std::size_t operator()(const replica_message& x) const {
    std::size_t words = 64;
    if (const auto* entry = std::get_if<entry_message>(&x.what))
      for (const auto& push : entry->entry.pushes)
        words += 26 + 4 * (push->pieces.size() + push->rows.size()) + push->tables.size()
                 + 5 * push->others.size();
    if (const auto* copy = std::get_if<copy_part>(&x.what))
      words += 8 * (copy->image.blocks.size() + copy->image.slabs.size() + 1);
    return words;
  }
  std::size_t operator()(const channel_message& x) const {
    const auto* parcel = std::get_if<parcel_message>(&x);
    return 64 + (parcel != nullptr ? parcel->head.size() / 8 + parcel->tensors.size() : 0);
  }
  std::size_t operator()(const status_message&) const { return 2048; }
  std::size_t operator()(const desired_state&) const { return 2048; }
  template <class Small>
  std::size_t operator()(const Small&) const {
    return 64;
  }
};

class envelope_writer {
public:
  envelope_writer(schema::Envelope::Builder to, detail::body_parts& body) : to_(to), body_(body) {
    to_.setVersion(protocol_version);
    to_.setMagic(magic);
  }

  void operator()(const hello& x) {
    to_.setVersion(x.version);
    detail::write(x, to_.initHello());
  }
  void operator()(const rejection& x) { detail::write(x, to_.initRejection()); }
  void operator()(const request_list& x) {
    detail::write(x, to_.initRequests(static_cast<unsigned>(x.items.size())), body_);
  }
  void operator()(const answer_list& x) {
    detail::write(x, to_.initAnswers(static_cast<unsigned>(x.items.size())), body_);
  }
  void operator()(const status_message& x) { detail::write(x, to_.initReport()); }
  void operator()(const desired_state& x) { detail::write(x, to_.initDesired()); }
  void operator()(const replica_message& x) { detail::write(x, to_.initPeer(), body_); }
  void operator()(const channel_message& x) { detail::write(x, to_.initLane(), body_); }

private:
  schema::Envelope::Builder to_;
  detail::body_parts& body_;
};

message read_message(schema::Envelope::Reader from, detail::body_reader& body) {
  switch (from.which()) {
  case schema::Envelope::HELLO: return detail::read(from.getHello());
  case schema::Envelope::REJECTION: return detail::read(from.getRejection());
  case schema::Envelope::REQUESTS: return detail::read(from.getRequests(), body);
  case schema::Envelope::ANSWERS: return detail::read(from.getAnswers(), body);
  case schema::Envelope::REPORT: return detail::read(from.getReport());
  case schema::Envelope::DESIRED: return detail::read(from.getDesired());
  case schema::Envelope::PEER: return detail::read(from.getPeer(), body);
  case schema::Envelope::LANE: return detail::read(from.getLane(), body);
  }
  throw detail::rejected{"a message of an unknown kind"};
}

void note_size(message& what, std::size_t frame_bytes) {
  std::visit(
    [=](auto& x) {
      if constexpr (requires { x.frame_bytes; })
        x.frame_bytes = frame_bytes;
    },
    what);
}

std::uint32_t word32(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

/// Checks only the 16 bytes that no version changes (envelope.capnp).
result<void> check_version(std::span<const std::byte> head) {
  // A struct pointer has 0 in its low two bits; the next thirty are the offset.
  if (word32(head, 0) != 0 || word32(head, 12) != magic)
    return {errc::malformed, "not a message of ours"};
  const auto version = word32(head, 8);
  if (version != protocol_version)
    return {errc::version_mismatch, "the peer speaks protocol version " + std::to_string(version)
                                      + ", this process speaks "
                                      + std::to_string(protocol_version)};
  return {};
}

} // namespace

std::size_t frame::size_bytes() const {
  auto total = head.size();
  for (const auto& gathered : body)
    total += gathered.bytes.size();
  return total;
}

frame encode(const message& what) {
  frame made;
  detail::segment_builder builder{prefix_bytes, std::visit(word_guess{}, what)};
  detail::body_parts body{made.body};
  std::visit(envelope_writer{builder.initRoot<schema::Envelope>(), body}, what);
  made.head = builder.finish<schema::Envelope>();
  const auto head_bytes = made.head.size() - prefix_bytes;
  if (body.size_bytes() <= copied_body_bytes_max) {
    for (const auto& part : std::exchange(made.body, {}))
      made.head.insert(made.head.end(), part.bytes.begin(), part.bytes.end());
  }
  const std::uint32_t prefix[] = {1, static_cast<std::uint32_t>(head_bytes / 8),
                                  static_cast<std::uint32_t>(body.size_bytes() / 8), 0};
  static_assert(sizeof(prefix) == prefix_bytes);
  std::memcpy(made.head.data(), prefix, sizeof(prefix));
  return made;
}

result<sizes> decode_prefix(std::span<const std::byte, prefix_bytes> prefix) {
  const auto further = word32(prefix, 0);
  const auto padding = word32(prefix, 12);
  const sizes found{.head_bytes = std::size_t{word32(prefix, 4)} * 8,
                    .body_bytes = std::size_t{word32(prefix, 8)} * 8};
  if (further != 1 || padding != 0 || found.head_bytes < head_bytes_min)
    return {errc::malformed, "not the beginning of a message of ours"};
  if (found.head_bytes > head_bytes_max || found.body_bytes > body_bytes_max)
    return {errc::malformed, "a message that is too large: " + std::to_string(found.head_bytes)
                               + " and " + std::to_string(found.body_bytes) + " bytes"};
  return found;
}

result<message> decode(std::span<const std::byte> head, std::shared_ptr<const std::byte> body,
                       std::size_t body_bytes) {
  assert(reinterpret_cast<std::uintptr_t>(head.data()) % 8 == 0);
  assert(body || body_bytes == 0);
  if (head.size() < head_bytes_min || head.size() > head_bytes_max || head.size() % 8 != 0
      || body_bytes > body_bytes_max)
    return {errc::malformed, "not a message of ours: its segments have "
                               + std::to_string(head.size()) + " and " + std::to_string(body_bytes)
                               + " bytes"};
  if (auto checked = check_version(head); !checked)
    return checked.error();
  return detail::guarded<message>([&]() -> result<message> {
    const kj::ArrayPtr<const capnp::word> segments[] = {
      {reinterpret_cast<const capnp::word*>(head.data()), head.size() / 8}};
    capnp::SegmentArrayMessageReader reader{kj::arrayPtr(segments, 1),
                                            detail::reader_options(head.size() / 8)};
    detail::body_reader values{std::move(body), body_bytes};
    auto made = read_message(reader.getRoot<schema::Envelope>(), values);
    values.finish();
    note_size(made, prefix_bytes + head.size() + body_bytes);
    return made;
  });
}

} // namespace troupe::wire
