// What an error of OpenSSL says about a peer, in words without a subject.
#pragma once

#include "base/error.hpp"

#include <optional>

namespace troupe::detail {

/// "does not speak TLS 1.3 ...".
failure not_tls();
/// Where the error (ERR_GET_REASON) is an alert that the peer sent, or its refusal to show a
/// certificate: what is meant.
std::optional<failure> failure_of_alert(int reason);
/// Whether an error during the handshake means that the peer speaks something else.
bool means_no_tls(int reason);

} // namespace troupe::detail
