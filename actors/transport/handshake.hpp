// Decides from the first bytes of each direction whether two processes may talk. These are a
// preamble (frames/preamble.hpp) and then, in fragments, a hello or a refusal.
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

/// Returns whether the sender of these bytes speaks TLS: a handshake or an alert.
bool may_be_tls(std::span<const std::byte> beginning);

/// Returns why `self` refuses the sender of a preamble; nullopt if it accepts. The text lacks its
/// subject: "belongs to another run". Takes the same time for all secrets that differ.
std::optional<failure> rejection_of(const preamble& self, const preamble& peer);
/// Returns why `self` refuses the sender of a hello; nullopt if it accepts.
std::optional<failure> rejection_of(const hello& self, const hello& peer);

/// Returns an acceptor's answer to a peer that it accepts. Tells the secret only to a peer that
/// sent it.
preamble answer_to(const preamble& self, const preamble& peer);

/// Returns a peer's text, fit for one line of a log.
std::string one_line(std::string text);

} // namespace troupe::detail
