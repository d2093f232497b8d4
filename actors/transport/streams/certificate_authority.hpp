// Issues the certificates of a job. A running job does not use it: its processes only read them.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A certificate and its key as PEM texts.
struct certified_key {
  std::string certificate;
  std::string key;
};

struct certificate_order {
  std::vector<role> roles; ///< Roles that its owner may have.
  /// Addresses and names at which its owner listens; empty: any. Connectors check only the
  /// addresses, because they know no names.
  std::vector<std::string> hosts;
  std::chrono::system_clock::time_point expires_at;
};

/// A private authority. Its keys are of type EC P-256. Its certificates serve both sides of a
/// connection, and are valid from an hour ago, because clocks differ.
class certificate_authority {
public:
  /// Makes a new authority. Throws std::runtime_error if the system has no random numbers or
  /// memory.
  explicit certificate_authority(std::chrono::system_clock::time_point expires_at);
  ~certificate_authority();
  certificate_authority(certificate_authority&&) noexcept;
  /// Reads an authority from a stored text(). Errors: malformed, with `name` for the person who
  /// reads it.
  static result<certificate_authority> from_text(const std::string& text, const std::string& name);

  /// Returns the PEM text of its certificate, which is public.
  std::string certificate() const;
  /// Returns the PEM text of its key and certificate. Every holder of it can issue certificates.
  std::string text() const;
  std::chrono::system_clock::time_point expires_at() const;
  /// Issues a certificate. Errors: invalid_argument (not a host; expires after the authority).
  result<certified_key> issue(const certificate_order& order) const;
  /// Returns whether `certificate`, a PEM text, came from issue().
  bool has_signed(const std::string& certificate) const;

private:
  struct parts;
  explicit certificate_authority(std::unique_ptr<parts> owned);

  std::unique_ptr<parts> parts_;
};

} // namespace troupe
