// Turns OpenSSL's errors into failures of a peer, as texts without a subject.
#pragma once

#include "base/error.hpp"

#include <optional>

namespace troupe::detail {

/// Returns "does not speak TLS 1.3 ...".
failure not_tls();
/// Returns the meaning of an error (ERR_GET_REASON) that is the peer's alert, or its refusal to
/// show a certificate; else nullopt.
std::optional<failure> failure_of_alert(int reason);
/// Returns whether an error during the handshake means that the peer does not speak TLS.
bool means_no_tls(int reason);

} // namespace troupe::detail
