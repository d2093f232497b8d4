// What a process shows to others and by which it knows them: its certificate, and the authority of
// its job.
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

/// PEM files.
struct tls_files {
  std::filesystem::path authority;   ///< Whose signature is trusted.
  std::filesystem::path certificate; ///< May be followed by those between it and the authority.
  std::filesystem::path key;         ///< Without a passphrase.
};

/// DIR/ca.pem, DIR/ROLE.pem, DIR/ROLE.key: as `troupe certs` writes them.
tls_files tls_files_in(const std::filesystem::path& directory, role who);

/// TLS 1.3 and nothing older; both sides show a certificate; no session is resumed, so that each
/// connection looks at the dates again. Immutable, thread-safe.
class tls_context {
public:
  /// Reads and checks the files, so that a process whose certificate nobody would accept does not
  /// start. Errors: io_failed (missing, unreadable), malformed (not what it should be),
  /// invalid_argument (key and certificate, or certificate and authority, do not belong together;
  /// the certificate expired, or is not for this role).
  static result<std::shared_ptr<const tls_context>> load(const tls_files& files, role who);
  /// Whether connectors will accept it at this address, a number. Errors: invalid_argument.
  result<void> check_address(const std::string& address) const;
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

private:
  friend class detail::tls_stream;
  explicit tls_context(tls_files files);

  const tls_files files_;
  ssl_ctx_st* context_;
  bio_method_st* method_; ///< How TLS reaches the socket; tls_stream.cpp.
};

} // namespace troupe
