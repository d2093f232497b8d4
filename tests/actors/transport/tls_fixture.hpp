// Certificates in files, two ends of an encrypted link that one thread drives, and a bare OpenSSL
// peer that shows wrong certificates.
#pragma once

#include "actors/transport/streams/certificate_authority.hpp"
#include "actors/transport/streams/openssl.hpp"
#include "actors/transport/streams/socket_stream.hpp"
#include "actors/transport/streams/tls_stream.hpp"

#include <openssl/err.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

using namespace std::chrono_literals;
using detail::link_side;
using stream_ptr = std::unique_ptr<detail::socket_stream>;
using detail::tls_stream;
using detail::transfer;

inline std::chrono::system_clock::time_point in_days(int days) {
  return std::chrono::system_clock::now() + std::chrono::hours{24 * days};
}

/// The certificates of one job, in a directory of its own.
class job_certificates {
public:
  job_certificates() : authority_(in_days(2)) {
    std::string form = (std::filesystem::temp_directory_path() / "troupe_tls_XXXXXX").string();
    path_ = mkdtemp(form.data());
    write("ca.pem", authority_.certificate());
    for (const auto& each : role_rows)
      issue(std::string{each.name}, {{each.role}, {}, in_days(1)});
  }
  ~job_certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  job_certificates(const job_certificates&) = delete;
  job_certificates& operator=(const job_certificates&) = delete;

  /// Writes NAME.pem and NAME.key.
  void issue(const std::string& name, const certificate_order& order) const {
    const auto made = authority_.issue(order);
    write(name + ".pem", made->certificate);
    write(name + ".key", made->key);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream{path_ / name} << text;
  }
  tls_files files(const std::string& name) const {
    return {path_ / "ca.pem", path_ / (name + ".pem"), path_ / (name + ".key")};
  }
  std::shared_ptr<const tls_context> context(role who) const {
    return *tls_context::load(tls_files_in(path_, who), who);
  }
  std::shared_ptr<const tls_context> context(role who, const std::string& name) const {
    return *tls_context::load(files(name), who);
  }
  const std::filesystem::path& path() const { return path_; }
  const certificate_authority& authority() const { return authority_; }

private:
  certificate_authority authority_;
  std::filesystem::path path_;
};

inline stream_ptr stream_of(int socket) {
  return std::make_unique<detail::socket_stream>(descriptor{socket}, detail::socket_tuning{});
}

inline std::pair<stream_ptr, stream_ptr> socket_pair() {
  int both[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) != 0)
    std::abort();
  return {stream_of(both[0]), stream_of(both[1])};
}

inline std::pair<stream_ptr, stream_ptr> tcp_pair() {
  const auto listener = detail::open_listener({"127.0.0.1", 0});
  const auto where = detail::resolve(*local_endpoint(listener->get()));
  int error = 0;
  auto connector = detail::socket_stream::connect(where->front(), {}, error);
  pollfd waited{listener->get(), POLLIN, 0};
  poll(&waited, 1, 10'000);
  return {std::move(connector),
          stream_of(accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK))};
}

inline transfer write_text(auto& to, std::string text) {
  iovec part{text.data(), text.size()};
  return to.write({&part, 1});
}

/// Reads all that can be read now; `last` says how reading stopped.
inline std::string read_text(auto& from, transfer& last) {
  std::string text, place(5000, '\0');
  for (;;) {
    iovec where{place.data(), place.size()};
    last = from.read({&where, 1});
    if (last.how != transfer::status::moved)
      return text;
    text.append(place, 0, last.bytes);
  }
}

/// One end of a connection and its outcome.
struct tls_end {
  tls_end(std::shared_ptr<const tls_context> context, stream_ptr socket, link_side side,
          const std::string& address = {},
          std::uint64_t records_per_key = tls_stream::key_records_max)
      : stream(std::move(context), std::move(socket), side, address, records_per_key) {}

  /// Goes on with the handshake, then reads the bytes that have arrived and sends those that wait.
  void step() {
    if (over())
      return;
    if (!established) {
      const auto done = stream.establish();
      established = done && *done;
      if (!done)
        last = {transfer::status::failed, 0, 0};
    }
    if (established) {
      stream.write({});
      got += read_text(stream, last);
    }
  }
  bool unsent() const { return (stream.interest(false) & EPOLLOUT) != 0; }
  bool over() const {
    return last.how == transfer::status::failed || last.how == transfer::status::ended;
  }
  std::string why() const { return reason().text; }
  failure reason() const { return stream.explain(last.error); }

  tls_stream stream;
  bool established = false;
  std::string got;
  transfer last;
};

/// Steps both ends until `done`; returns false after 10 s.
template <class One, class Other, class Done>
bool drive(One& one, Other& other, Done done) {
  for (const auto end = std::chrono::steady_clock::now() + 10s;
       std::chrono::steady_clock::now() < end;) {
    one.step();
    other.step();
    if (done())
      return true;
  }
  return false;
}

/// OpenSSL without Troupe's checks: shows any certificate, or none, and speaks any version.
class bare_tls_peer {
public:
  bare_tls_peer(stream_ptr socket, link_side side, const std::filesystem::path& authority,
                const tls_files* shown, int version = TLS1_3_VERSION)
      : socket_(std::move(socket)), context_(SSL_CTX_new(TLS_method())) {
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_load_verify_file(context_.get(), authority.c_str());
    if (shown != nullptr) {
      SSL_CTX_use_certificate_file(context_.get(), shown->certificate.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), shown->key.c_str(), SSL_FILETYPE_PEM);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_->poll_descriptor());
    SSL_set_msg_callback(ssl_.get(), count_new_keys);
    SSL_set_msg_callback_arg(ssl_.get(), &new_keys);
    if (side == link_side::connector)
      SSL_set_connect_state(ssl_.get());
    else
      SSL_set_accept_state(ssl_.get());
  }

  void step() {
    char scratch[1000];
    const int size = SSL_read(ssl_.get(), scratch, sizeof scratch);
    if (size > 0)
      got.append(scratch, static_cast<std::size_t>(size));
    else if (SSL_get_error(ssl_.get(), size) != SSL_ERROR_WANT_READ && why.empty())
      why = detail::take_openssl_error();
  }
  void write(const std::string& text) {
    SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
  }
  void ask_for_new_keys() {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(ssl_.get());
  }
  void say_goodbye() { SSL_shutdown(ssl_.get()); }
  void cut() { socket_->reset(); }

  std::string got;
  std::string why;
  int new_keys = 0; ///< Key updates from the other side.

private:
  static void count_new_keys(int sent, int, int kind, const void* bytes, std::size_t size, SSL*,
                             void* count) {
    if (sent == 0 && kind == SSL3_RT_HANDSHAKE && size != 0
        && *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE)
      ++*static_cast<int*>(count);
  }

  stream_ptr socket_;
  std::unique_ptr<SSL_CTX, detail::freed_by<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, detail::freed_by<SSL_free>> ssl_;
};

} // namespace troupe::test
