// Holds the certificate that a process shows, and the job's authority by which it checks peers.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <filesystem>
#include <memory>
#include <string>

struct bio_method_st;
struct ssl_ctx_st;

namespace troupe {

namespace detail {
class tls_stream;
}

/// Paths of PEM files.
struct tls_files {
  std::filesystem::path authority;   ///< Its signature is trusted.
  std::filesystem::path certificate; ///< May be followed by intermediate ones.
  std::filesystem::path key;         ///< Without a passphrase.
};

/// Returns DIR/ca.pem, DIR/ROLE.pem and DIR/ROLE.key, as `troupe certs` writes them.
tls_files tls_files_in(const std::filesystem::path& directory, role who);

/// Requires TLS 1.3 and a certificate of both sides. No session is resumed, so that each connection
/// checks the dates again. Immutable, thread-safe.
class tls_context {
public:
  /// Reads and checks the files, so that a process with an unacceptable certificate does not start.
  /// Errors: io_failed (missing, unreadable), malformed (wrong contents), and invalid_argument: key
  /// and certificate, or certificate and authority, do not match, or the certificate expired or is
  /// for another role.
  static result<std::shared_ptr<const tls_context>> load(const tls_files& files, role who);
  /// Checks that connectors will accept it at this numeric address. Errors: invalid_argument.
  result<void> check_address(const std::string& address) const;
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

private:
  friend class detail::tls_stream;
  explicit tls_context(tls_files files);

  const tls_files files_;
  ssl_ctx_st* context_;
  bio_method_st* method_; ///< Connects TLS to the socket; see tls_stream.cpp.
};

} // namespace troupe
