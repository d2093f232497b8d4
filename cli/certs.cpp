#include "cli/certs.hpp"

#include "actors/transport/streams/certificate_authority.hpp"
#include "actors/transport/streams/socket_address.hpp"
#include "actors/transport/streams/tls_context.hpp"
#include "base/command_line.hpp"
#include "base/quote.hpp"
#include "base/system/file.hpp"
#include "base/system/output_file.hpp"

#include "CLI/CLI.hpp"
#include "fmt/chrono.h"
#include "fmt/format.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using system_time = std::chrono::system_clock::time_point;

constexpr mode_t for_everyone = 0644;
constexpr mode_t for_its_user = 0600;
// A kept authority has to sign further certificates later.
constexpr std::chrono::hours kept_authority_life{24 * 3650};

/// Returns `hosts` and the addresses of names, as connectors know numbers only. Adds this host
/// unless `hosts` is empty.
result<std::vector<std::string>> addresses_and_names(const std::vector<std::string>& hosts) {
  std::vector<std::string> all;
  const auto add = [&all](const std::string& host) {
    if (std::find(all.begin(), all.end(), host) == all.end())
      all.push_back(host);
  };
  for (const auto& host : hosts) {
    const auto addresses = detail::resolve({host, 0});
    if (!addresses)
      return addresses.error();
    for (const auto& address : *addresses)
      if (const auto where = detail::endpoint_of(address))
        add(where->host);
    add(host);
  }
  if (!hosts.empty())
    for (const char* own : {"127.0.0.1", "::1", "localhost"})
      add(own);
  return all;
}

result<void> check_free(const std::vector<std::filesystem::path>& paths) {
  for (const auto& path : paths)
    if (std::filesystem::exists(std::filesystem::symlink_status(path)))
      return {errc::in_use, path.string() + " exists already: --force replaces it"};
  return {};
}

bool is_in(const std::filesystem::path& file, const std::filesystem::path& directory) {
  const auto folder = std::filesystem::weakly_canonical(directory / "x").parent_path();
  const auto way = std::filesystem::weakly_canonical(file).lexically_relative(folder);
  return !way.empty() && *way.begin() != "..";
}

/// Checks that the certificates which are not replaced fit the new ca.pem.
result<void> check_others(const certs_options& options, const std::vector<role>& made,
                          const certificate_authority& authority) {
  if (const auto before = read_file(options.directory / "ca.pem");
      before && *before == authority.certificate())
    return {};
  std::string others;
  for (const auto& each : role_rows) {
    const auto path = tls_files_in(options.directory, each.role).certificate;
    if (std::ranges::find(made, each.role) != made.end() || !std::filesystem::exists(path))
      continue;
    if (const auto text = read_file(path); !text || !authority.has_signed(*text))
      others += (others.empty() ? "" : ", ") + path.filename().string();
  }
  if (others.empty())
    return {};
  const auto& kept = options.authority;
  const auto way = !kept ? "name that authority with --ca"
                   : std::filesystem::exists(*kept)
                     ? "name that authority with --ca instead of " + kept->string()
                     : "bring back " + kept->string() + ", which is missing";
  return {errc::invalid_argument,
          options.directory.string() + " also holds " + others
            + ", which another authority signed and a new ca.pem would make useless: " + way
            + ", or replace all roles"};
}

result<void> make_private_directory(const std::filesystem::path& path) {
  std::error_code problem;
  std::filesystem::create_directories(path.parent_path(), problem);
  if (mkdir(path.c_str(), 0700) == 0)
    return {};
  const int why = errno;
  if (why == EEXIST && std::filesystem::is_directory(path))
    return {};
  return {errc::io_failed,
          "cannot make the directory " + path.string() + ": " + std::strerror(why)};
}

/// Returns the authority that signs. A new one that is to be kept is not written yet.
result<certificate_authority> authority_for(const certs_options& options, system_time now) {
  if (!options.authority)
    // A day longer than its certificates, so that their end is the one that a user is told.
    return certificate_authority{now + std::chrono::hours{24} * (options.days + 1)};
  if (std::filesystem::exists(*options.authority)) {
    const auto text = read_file(*options.authority);
    if (!text)
      return text.error();
    return certificate_authority::from_text(*text, options.authority->string());
  }
  return certificate_authority{now + kept_authority_life};
}

std::vector<std::string> story(const certs_options& options, const std::vector<role>& roles,
                               const std::vector<std::string>& hosts, system_time expires_at) {
  const auto authority = options.authority
                           ? "its key is in " + options.authority->string() + ", which no job needs"
                           : std::string{"its key was used and forgotten"};
  std::vector<std::string> lines{fmt::format("{}: the authority that all trust; {}",
                                             (options.directory / "ca.pem").string(), authority)};
  for (const role who : roles) {
    const auto files = tls_files_in(options.directory, who);
    lines.push_back(
      fmt::format("{} and {}", files.certificate.string(), files.key.filename().string()));
  }
  lines.push_back(
    fmt::format("good until {:%Y-%m-%d %H:%M} UTC, for listening {}",
                fmt::gmtime(std::chrono::system_clock::to_time_t(expires_at)),
                hosts.empty() ? "on any host" : "at " + fmt::format("{}", fmt::join(hosts, ", "))));
  const auto directory = options.directory.string();
  if (std::ranges::none_of(roles, [](role x) { return traits_of(x).leads_job; })) {
    lines.insert(lines.end(),
                 {"", "Copy the directory to the host that it is for, which can only join with it:",
                  fmt::format("  PROGRAM --tls {} --join ADDRESS:4000 --here ...", directory)});
    return lines;
  }
  const auto address = options.hosts.empty() ? "ADDRESS" : options.hosts.front();
  lines.insert(
    lines.end(),
    {"",
     "Copy the directory to each host of the job (without coordinator.key where it only joins),",
     "and add --tls to the command lines:",
     fmt::format("  PROGRAM --tls {} --listen {}:4000 --here ...", directory, address),
     fmt::format("  PROGRAM --tls {} --join {}:4000 --here ...", directory, address)});
  return lines;
}

/// Returns the names of all roles.
std::string role_list() {
  std::string text;
  for (const auto& each : role_rows)
    text.append(text.empty() ? "" : ", ").append(each.name);
  return text;
}

result<role> parse_role(const std::string& text) {
  for (const auto& each : role_rows)
    if (each.name == text)
      return each.role;
  return {errc::invalid_argument, quote(text) + " is not a role: " + role_list()};
}

} // namespace

result<std::vector<std::string>> make_certificates(const certs_options& options) {
  auto roles = options.roles;
  if (roles.empty())
    std::ranges::transform(role_rows, std::back_inserter(roles), &role_traits::role);
  std::vector<std::filesystem::path> paths{options.directory / "ca.pem"};
  for (const role who : roles) {
    const auto files = tls_files_in(options.directory, who);
    paths.insert(paths.end(), {files.certificate, files.key});
  }
  if (options.authority && is_in(*options.authority, options.directory))
    return {errc::invalid_argument, "--ca " + options.authority->string() + " is in "
                                      + options.directory.string()
                                      + ", which goes to every host: keep it elsewhere"};
  if (auto free = check_free(paths); !free && !options.replace)
    return free.error();
  const auto hosts = addresses_and_names(options.hosts);
  if (!hosts)
    return hosts.error();
  const auto now = std::chrono::system_clock::now();
  const auto authority = authority_for(options, now);
  if (!authority)
    return authority.error();
  if (auto fits = check_others(options, roles, *authority); !fits)
    return fits.error();
  // All are made before the first is written: an error leaves the old files. The authority is
  // written first, as no more certificates can be made for a ca.pem without it. After a crash later
  // on, tls_context::load names the mixture of old and new files.
  std::vector<output_text> texts;
  if (options.authority && !std::filesystem::exists(*options.authority))
    texts.push_back({*options.authority, authority->text(), for_its_user});
  texts.push_back({options.directory / "ca.pem", authority->certificate(), for_everyone});
  const auto expires_at = now + std::chrono::hours{24} * options.days;
  for (const role who : roles) {
    const auto made = authority->issue({{who}, *hosts, expires_at});
    if (!made)
      return made.error();
    const auto files = tls_files_in(options.directory, who);
    texts.push_back({files.certificate, made->certificate, for_everyone});
    texts.push_back({files.key, made->key, for_its_user});
  }
  if (auto made = make_private_directory(options.directory); !made)
    return made.error();
  if (auto written = write_outputs(texts); !written)
    return written.error();
  return story(options, roles, *hosts, expires_at);
}

command certs_command(CLI::App& app) {
  const auto options = std::make_shared<certs_options>();
  auto* words = app.add_subcommand("certs", "Makes the certificates for --tls: a private authority "
                                            "for one job, and a certificate and key for each role");
  words->add_option("--out", options->directory, "Directory for them (mode 0700; keys are 0600)")
    ->check(path_fault)
    ->required();
  words
    ->add_option("--hosts", options->hosts,
                 "Names and addresses that the job listens at, such as 10.0.0.1,host-b; its "
                 "certificates are then refused at others (default: any)")
    ->delimiter(',');
  words->add_option("--days", options->days, "Days until they expire; 0: at once, for trials")
    ->check(CLI::Range(0, 3650).description("0..3650"))
    ->capture_default_str();
  words
    ->add_option_function<std::vector<std::string>>(
      "--roles",
      [options](const std::vector<std::string>& texts) {
        for (const auto& text : texts) {
          const auto who = parse_role(text);
          if (!who)
            throw CLI::ValidationError{"--roles", who.error().text};
          options->roles.push_back(*who);
        }
      },
      "The roles: " + role_list() + " (default: all)")
    ->delimiter(',');
  words
    ->add_option("--ca", options->authority,
                 "File that keeps the authority with its key, for more certificates later; it "
                 "is made where it is missing (default: its key is forgotten)")
    ->check(path_fault);
  words->add_flag("--force", options->replace, "Replace files that exist");
  return {words, [options]() -> result<void> {
            const auto lines = make_certificates(*options);
            if (!lines)
              return lines.error();
            for (const auto& line : *lines)
              fmt::print("{}\n", line);
            return {};
          }};
}

} // namespace troupe
