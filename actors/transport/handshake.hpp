// Decides whether two processes talk to each other: the rules about the first bytes of each
// direction, a preamble (frames/preamble.hpp) and then, in chunks, a hello or a refusal.
#pragma once

#include "actors/transport/frames/preamble.hpp"
#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::detail {

/// Whether who sent these bytes speaks TLS: a handshake or an alert.
bool may_be_tls(std::span<const std::byte> beginning);

/// Why `self` refuses who sent a preamble; nothing where it does not. The text lacks its subject:
/// "belongs to another run". Takes the same time for all secrets that differ.
std::optional<failure> rejection_of(const preamble& self, const preamble& peer);
/// The same for a hello.
std::optional<failure> rejection_of(const hello& self, const hello& peer);

/// What an acceptor answers to who has no objection. The secret is told only to who knows it.
preamble answer_to(const preamble& self, const preamble& peer);

/// A peer's words, fit for one line of a log.
std::string one_line(std::string text);

} // namespace troupe::detail
