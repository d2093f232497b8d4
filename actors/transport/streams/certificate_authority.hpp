// Makes the certificates of a job. Not used by a job that runs: its processes only read them.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// PEM texts.
struct certified_key {
  std::string certificate;
  std::string key;
};

struct certificate_order {
  std::vector<role> roles; ///< What its owner may be.
  /// Addresses and names at which its owner listens; none: anywhere. Connectors look at the
  /// addresses alone, as they only know those.
  std::vector<std::string> hosts;
  std::chrono::system_clock::time_point expires_at;
};

/// A private authority. Its keys are of type EC P-256; certificates serve both sides of a
/// connection, and are valid from an hour ago, because clocks differ.
class certificate_authority {
public:
  /// A new one. Throws std::runtime_error where the system has no random numbers or memory.
  explicit certificate_authority(std::chrono::system_clock::time_point expires_at);
  ~certificate_authority();
  certificate_authority(certificate_authority&&) noexcept;
  /// One that text() was kept of. Errors: malformed, with `name` for the person who reads it.
  static result<certificate_authority> from_text(const std::string& text, const std::string& name);

  /// PEM of its certificate, which everyone may have.
  std::string certificate() const;
  /// PEM of its key and its certificate: who has it can issue.
  std::string text() const;
  std::chrono::system_clock::time_point expires_at() const;
  /// Errors: invalid_argument (a host that is none; an end after that of the authority).
  result<certified_key> issue(const certificate_order& order) const;
  /// Whether this text, PEM of a certificate, came from issue().
  bool has_signed(const std::string& certificate) const;

private:
  struct parts;
  explicit certificate_authority(std::unique_ptr<parts> owned);

  std::unique_ptr<parts> parts_;
};

} // namespace troupe
