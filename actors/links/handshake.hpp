// Whether two processes talk to each other: the first bytes of each direction, and the rules about
// them. First comes a preamble of fixed size, which a stranger cannot do harm with:
//
//   8 bytes  "TROUPE\r\n"
//   u32      protocol version     little-endian
//   u32      0
//   u64      secret, 0: none
//
// Magic and version never change their place. Then, in chunks, a hello or a refusal.
#pragma once

#include "serialization/error.hpp"
#include "serialization/messages.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::detail {

constexpr std::size_t preamble_bytes = 24;

struct preamble {
  std::uint32_t version = 0;
  std::uint64_t secret = 0;
};

std::array<std::byte, preamble_bytes> encode(const preamble& what);
/// False: what begins with these bytes is none. Requires: at most preamble_bytes.
bool may_be_preamble(std::span<const std::byte> beginning);
/// Whether who sent these bytes speaks TLS: a handshake or an alert.
bool may_be_tls(std::span<const std::byte> beginning);
preamble decode_preamble(std::span<const std::byte, preamble_bytes> bytes);

/// Why `self` refuses who sent a preamble; nothing where it does not. The text lacks its subject:
/// "belongs to another run". Takes the same time for all secrets that differ.
std::optional<failure> objection(const preamble& self, const preamble& peer);
/// The same for a hello.
std::optional<failure> objection(const hello& self, const hello& peer);

/// What an acceptor answers to who has no objection. The secret is told only to who knows it.
preamble answer_to(const preamble& self, const preamble& peer);

/// A peer's words, fit for one line of a log.
std::string one_line(std::string text);

} // namespace troupe::detail
