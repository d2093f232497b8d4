// Whether two processes talk to each other: the rules of the first message of each direction.
#pragma once

#include "serialization/error.hpp"
#include "serialization/messages.hpp"

#include <optional>

namespace troupe::detail {

/// Why `self` refuses `peer`; nothing where it does not. The text lacks its subject: "belongs to
/// another job".
std::optional<failure> objection(const hello& self, const hello& peer);

/// What an acceptor answers to a peer that it lets in. The secret is told only to who knows it.
hello answer_to(const hello& self, const hello& peer);

/// A peer's words, fit for one line of a log.
std::string one_line(std::string text);

} // namespace troupe::detail
