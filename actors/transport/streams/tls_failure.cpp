#include "actors/transport/streams/tls_failure.hpp"

#include <openssl/ssl.h>

#include <string>

namespace troupe::detail {

failure not_tls() {
  return {errc::malformed, "does not speak TLS 1.3: is it started with --tls DIR?"};
}

std::optional<failure> failure_of_alert(int reason) {
  const auto refuses = [](const std::string& why) {
    return failure{errc::untrusted, "does not accept our certificate" + why};
  };
  switch (reason) {
  case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    return failure{errc::untrusted, "showed no certificate"};
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return refuses(": it is of another authority than its ca.pem");
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    return refuses(": it has expired, or is not valid yet");
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_TLSV1_ALERT_ACCESS_DENIED: return refuses("");
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return failure{errc::untrusted, "wants a certificate from us"};
  case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION: return not_tls();
  default: return std::nullopt;
  }
}

bool means_no_tls(int reason) {
  switch (reason) {
  case SSL_R_WRONG_VERSION_NUMBER:
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_HTTP_REQUEST:
  case SSL_R_HTTPS_PROXY_REQUEST:
  case SSL_R_BAD_RECORD_TYPE:
  case SSL_R_UNEXPECTED_MESSAGE:
  case SSL_R_PACKET_LENGTH_TOO_LONG:
  case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
  case SSL_R_BAD_LENGTH: return true;
  default: return false;
  }
}

} // namespace troupe::detail
