// Names the open requests of a state machine's caller, and their outcomes. Values and replies stay
// with the caller.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/push_pull.hpp"

#include <cstdint>

namespace troupe {

/// Names an open request of the caller. Never used twice.
using request_token = id<struct request_tag, std::uint64_t>;

// -- effects --
/// Give the request this reply.
struct answered_effect {
  request_token request;
  reply answer;
};
/// Give the request this failure.
struct failed_effect {
  request_token request;
  failure why;
};

} // namespace troupe
