// `troupe certs`: makes the files that --tls DIR takes.
#pragma once

#include "cli/command.hpp"
#include "serialization/ids.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct certs_options {
  std::filesystem::path directory;
  /// Names and addresses of the hosts that the job listens on; names are looked up once, now.
  /// Empty: the certificates are good on any host.
  std::vector<std::string> hosts{};
  /// Until they expire. 0: they have expired already, for trials.
  int days = 30;
  std::vector<role> roles{}; ///< Empty: all.
  /// Keeps the authority in this file, or takes it from there. Without it its key is forgotten, so
  /// that nobody can make more certificates for the job.
  std::optional<std::filesystem::path> authority{};
  bool replace = false;
};

/// What was made, in lines for a person.
/// Errors: in_use (files are there already), io_failed, invalid_argument, malformed.
result<std::vector<std::string>> make_certificates(const certs_options& options);

command certs_command(CLI::App& app);

} // namespace troupe
