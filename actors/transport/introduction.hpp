// Collects a peer's preamble and decides, with its hello, whether this side refuses it.
#pragma once

#include "actors/transport/handshake.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/messages.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace troupe::detail {

/// Why a link is refused. Both texts lack their subject, the other side.
struct peer_rejection {
  failure here;  ///< For this side: "belongs to another job".
  failure there; ///< Sent to the peer.
};

/// Collects the peer's preamble, then checks it and the hello that follows.
class introduction {
public:
  /// Takes the bytes of the preamble and returns their number: all of `bytes` if they end before
  /// the preamble does. Errors: malformed (not a preamble of Troupe).
  result<std::size_t> take(std::span<const std::byte> bytes);
  bool has_preamble() const { return filled_ == preamble_bytes; }
  /// Requires: has_preamble().
  preamble peer() const { return decode_preamble(bytes_); }
  /// Returns whether the bytes so far are TLS.
  bool speaks_tls() const { return may_be_tls(std::span{bytes_}.first(filled_)); }

  /// `secret_needed`: a peer without one is of no business here. Requires: has_preamble().
  std::optional<peer_rejection> rejection_for(const preamble& self, bool secret_needed) const;
  /// To the hello that came after it. `proved`: see stream::proved_roles.
  static std::optional<peer_rejection>
  rejection_for(const hello& self, const hello& peer,
                const std::optional<std::vector<role>>& proved);

private:
  std::array<std::byte, preamble_bytes> bytes_{};
  std::size_t filled_ = 0;
};

} // namespace troupe::detail
