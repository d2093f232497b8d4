// `troupe certs` makes the files that --tls DIR takes.
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
  /// Days until the certificates expire. 0: they have expired already, for trials.
  int days = 30;
  std::vector<role> roles{}; ///< Empty: all roles.
  /// Keeps the authority in this file, or takes it from there. If not set, the authority's key is
  /// forgotten, so that no further certificates can be made for the job.
  std::optional<std::filesystem::path> authority{};
  bool replace = false;
};

/// Makes the files and returns lines that tell the user about them.
/// Errors: in_use (files are there already), io_failed, invalid_argument, malformed.
result<std::vector<std::string>> make_certificates(const certs_options& options);

command certs_command(CLI::App& app);

} // namespace troupe
