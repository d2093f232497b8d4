#include "cli/certs.hpp"

#include "actors/transport/streams/openssl.hpp"
#include "actors/transport/streams/tls_context.hpp"
#include "base/system/file.hpp"
#include "base/system/output_file.hpp"

#include "doctest/doctest.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

namespace certs_test {

using namespace troupe;

namespace {

struct folder {
  folder() {
    std::string form = (std::filesystem::temp_directory_path() / "troupe_cli_XXXXXX").string();
    path = mkdtemp(form.data());
  }
  ~folder() { std::filesystem::remove_all(path); }

  std::filesystem::path path;
};

int mode_of(const std::filesystem::path& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

std::string loading(const std::filesystem::path& directory, role who) {
  const auto loaded = tls_context::load(tls_files_in(directory, who), who);
  return loaded ? "" : loaded.error().text;
}

detail::certificate_ptr certificate_in(const std::filesystem::path& path) {
  const detail::bio_ptr file{BIO_new_file(path.c_str(), "r")};
  return detail::certificate_ptr{PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr)};
}

/// The authority's certificate, and a certificate and a key for each role.
constexpr auto files = 1 + 2 * std::ssize(role_rows);

} // namespace

TEST_CASE("certs: every role gets a certificate that it can start with, and private files") {
  const folder home;
  const auto directory = home.path / "deep" / "certs";
  const mode_t before = umask(0);
  const auto lines = make_certificates({.directory = directory});
  umask(before);
  REQUIRE(lines);
  for (const auto& who : role_rows) {
    const auto files = tls_files_in(directory, who.role);
    CHECK(loading(directory, who.role).empty());
    CHECK(mode_of(files.key) == 0600);
    CHECK(mode_of(files.certificate) == 0644);
    CHECK(detail::roles_of(*certificate_in(files.certificate)) == std::vector{who.role});
    CHECK(detail::addresses_of(*certificate_in(files.certificate)).empty());
  }
  CHECK(mode_of(directory) == 0700);
  const auto entries = std::filesystem::directory_iterator{directory};
  CHECK(std::distance(begin(entries), end(entries)) == files); // The authority's key is not there.
}

TEST_CASE("certs: hosts are looked up, and this one is always among them") {
  const folder home;
  REQUIRE(make_certificates({.directory = home.path, .hosts = {"10.0.0.1", "localhost"}}));
  auto addresses = detail::addresses_of(*certificate_in(home.path / "server.pem"));
  CHECK(std::count(addresses.begin(), addresses.end(), "10.0.0.1") == 1);
  CHECK(std::count(addresses.begin(), addresses.end(), "127.0.0.1") == 1);
  CHECK(std::count(addresses.begin(), addresses.end(), "::1") == 1);
}

TEST_CASE("certs: what is there is replaced only if that is asked for, and never half") {
  const folder home;
  REQUIRE(make_certificates({.directory = home.path}));
  const auto before = *read_file(home.path / "worker.pem");
  const auto refused = make_certificates({.directory = home.path});
  CHECK(refused.error().code == errc::in_use);
  CHECK(refused.error().text
        == (home.path / "ca.pem").string() + " exists already: --force replaces it");
  const auto bad = make_certificates({.directory = home.path, .hosts = {"a b"}, .replace = true});
  CHECK(bad.error().code == errc::invalid_argument);
  CHECK(*read_file(home.path / "worker.pem") == before);
  REQUIRE(make_certificates({.directory = home.path, .replace = true}));
  CHECK(*read_file(home.path / "worker.pem") != before);
  CHECK(loading(home.path, role::worker).empty());
}

TEST_CASE("certs: where one file cannot be replaced, none is, and nothing is left beside them") {
  const folder home;
  const auto directory = home.path / "certs", kept = home.path / "kept.pem";
  REQUIRE(make_certificates({.directory = directory}));
  const auto before = *read_file(directory / "ca.pem"),
             worker = *read_file(directory / "worker.pem");
  std::filesystem::remove(directory / "observer.key");
  std::filesystem::create_directory(directory / "observer.key");
  const auto refused =
    make_certificates({.directory = directory, .authority = kept, .replace = true});
  CHECK(refused.error()
        == failure{errc::io_failed, "cannot write " + (directory / "observer.key").string()
                                      + ": it is a directory"});
  CHECK(*read_file(directory / "ca.pem") == before);
  CHECK(*read_file(directory / "worker.pem") == worker);
  CHECK(loading(directory, role::worker).empty());
  CHECK_FALSE(std::filesystem::exists(kept));
  const auto entries = std::filesystem::directory_iterator{directory};
  CHECK(std::distance(begin(entries), end(entries)) == files);
}

TEST_CASE("certs: what a crash leaves of old and new files works or is named in one line") {
  const folder home;
  for (const char* each : {"old", "new"})
    REQUIRE(make_certificates({.directory = home.path / each}));
  const auto mixed = home.path / "mixed";
  std::filesystem::create_directory(mixed);
  const std::pair<std::array<const char*, 3>, std::string> cases[] = {
    {{"old", "old", "old"}, ""},
    {{"new", "old", "old"}, "worker.pem is of another authority than ca.pem"},
    {{"new", "new", "old"}, "worker.key is not the key of " + (mixed / "worker.pem").string()},
    {{"new", "new", "new"}, ""}};
  for (const auto& [from, line] : cases) {
    const char* names[] = {"ca.pem", "worker.pem", "worker.key"};
    for (std::size_t i = 0; i < std::size(names); ++i)
      std::filesystem::copy_file(home.path / from[i] / names[i], mixed / names[i],
                                 std::filesystem::copy_options::overwrite_existing);
    const auto found = loading(mixed, role::worker);
    CAPTURE(found);
    CHECK(found.find(line) != std::string::npos);
    CHECK(found.empty() == line.empty());
  }
}

TEST_CASE("certs: a kept authority makes certificates that go together, in files of its own") {
  const folder home;
  const auto kept = home.path / "authority.pem";
  REQUIRE(make_certificates({.directory = home.path / "a", .authority = kept}));
  CHECK(mode_of(kept) == 0600);
  REQUIRE(make_certificates(
    {.directory = home.path / "b", .roles = {role::worker, role::observer}, .authority = kept}));
  CHECK(*read_file(home.path / "a/ca.pem") == *read_file(home.path / "b/ca.pem"));
  CHECK(loading(home.path / "b", role::worker).empty());
  CHECK_FALSE(std::filesystem::exists(home.path / "b/server.pem"));
  const auto inside =
    make_certificates({.directory = home.path / "c", .authority = home.path / "c/authority.pem"});
  CHECK(inside.error().text.find("which goes to every host: keep it elsewhere")
        != std::string::npos);
  const auto deep = make_certificates(
    {.directory = home.path / "c", .authority = home.path / "c/keys/of/authority.pem"});
  CHECK(deep.error().code == errc::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(home.path / "c"));
  std::filesystem::create_directory(home.path / "beside");
  CHECK(make_certificates(
    {.directory = home.path / "besides", .authority = home.path / "beside/authority.pem"}));
  const auto wrong =
    make_certificates({.directory = home.path / "d", .authority = home.path / "a/ca.pem"});
  CHECK(wrong.error().code == errc::malformed);
}

TEST_CASE("certs: a new authority does not get between certificates that stay") {
  const folder home;
  const auto directory = home.path / "certs", kept = home.path / "kept.pem";
  REQUIRE(make_certificates({.directory = directory}));
  const auto before = *read_file(directory / "ca.pem");
  for (const auto& authority : {std::optional<std::filesystem::path>{}, std::optional{kept}}) {
    const auto refused = make_certificates({.directory = directory,
                                            .roles = {role::worker, role::observer},
                                            .authority = authority,
                                            .replace = true});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().text
          == directory.string()
               + " also holds coordinator.pem, server.pem, actor.pem, which another authority "
                 "signed and a new ca.pem would make useless: "
               + (authority ? "bring back " + kept.string() + ", which is missing"
                            : "name that authority with --ca")
               + ", or replace all roles");
    CHECK(*read_file(directory / "ca.pem") == before);
    CHECK_FALSE(std::filesystem::exists(kept));
  }
  REQUIRE(make_certificates({.directory = directory, .authority = kept, .replace = true}));
  REQUIRE(make_certificates(
    {.directory = directory, .roles = {role::worker}, .authority = kept, .replace = true}));
  for (const auto& who : role_rows)
    CHECK(loading(directory, who.role).empty());
}

TEST_CASE("certs: a ca.pem that was lost comes back from the authority that signed the others") {
  const folder home;
  const auto directory = home.path / "certs", kept = home.path / "kept.pem";
  const auto worker_by = [&](const std::filesystem::path& authority) {
    return make_certificates(
      {.directory = directory, .roles = {role::worker}, .authority = authority, .replace = true});
  };
  REQUIRE(make_certificates({.directory = directory, .authority = kept}));
  const auto before = *read_file(directory / "ca.pem");
  std::filesystem::remove(directory / "ca.pem");
  const auto other = home.path / "other.pem";
  REQUIRE(make_certificates({.directory = home.path / "else", .authority = other}));
  CHECK(
    worker_by(other).error().text.find("name that authority with --ca instead of " + other.string())
    != std::string::npos);
  REQUIRE(worker_by(kept));
  CHECK(*read_file(directory / "ca.pem") == before);
  for (const auto& who : role_rows)
    CHECK(loading(directory, who.role).empty());
}

TEST_CASE("certs: a link to an authority stays, and the keys keep to their user") {
  const folder home;
  std::filesystem::create_symlink("real.pem", home.path / "ca.pem");
  REQUIRE(make_certificates({.directory = home.path / "certs", .authority = home.path / "ca.pem"}));
  CHECK(std::filesystem::is_symlink(home.path / "ca.pem"));
  CHECK(mode_of(home.path / "real.pem") == 0600);
  REQUIRE(make_certificates({.directory = home.path / "certs", .replace = true}));
  CHECK(mode_of(home.path / "certs" / "worker.key") == 0600);
  const auto entries = std::filesystem::directory_iterator{home.path / "certs"};
  CHECK(std::distance(begin(entries), end(entries)) == files);
}

TEST_CASE("certs: certificates for no days have expired, and their owner is told at the start") {
  const folder home;
  REQUIRE(make_certificates({.directory = home.path, .days = 0}));
  CHECK(loading(home.path, role::worker).find("worker.pem expired on 20") != std::string::npos);
}

TEST_CASE("certs: a directory that cannot be made is named") {
  const folder home;
  REQUIRE(write_outputs({{home.path / "file", "x", 0600}}));
  CHECK(make_certificates({.directory = home.path / "file" / "certs"}).error().code
        == errc::io_failed);
  CHECK(make_certificates({.directory = home.path / "file"}).error().text
        == "cannot make the directory " + (home.path / "file").string() + ": File exists");
}

} // namespace certs_test
