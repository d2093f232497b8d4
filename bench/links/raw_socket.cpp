#include "bench/links/raw_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace troupe::bench {

namespace {

[[noreturn]] void fail_socket(const std::string& what) {
  throw std::runtime_error{what + ": " + std::system_category().message(errno)};
}

union any_address {
  sockaddr base;
  sockaddr_in tcp;
  sockaddr_un unix_name;
};

/// Drops the first `moved` bytes of `parts`.
std::span<iovec> rest_of(std::span<iovec> parts, std::size_t moved) {
  while (!parts.empty() && moved >= parts.front().iov_len) {
    moved -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + moved;
    parts.front().iov_len -= moved;
  }
  return parts;
}

msghdr header_for(std::span<iovec> parts) {
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  return header;
}

int open_stream(socket_kind kind) {
  const int made =
    socket(kind == socket_kind::tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0)
    fail_socket("socket");
  return made;
}

} // namespace

raw_socket::~raw_socket() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

raw_socket::raw_socket(raw_socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

raw_socket& raw_socket::operator=(raw_socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

raw_socket raw_socket::listen(socket_kind kind) {
  raw_socket made{open_stream(kind)};
  any_address where{};
  socklen_t size = sizeof where.tcp;
  where.base.sa_family = AF_INET;
  if (kind == socket_kind::tcp) {
    where.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else { // The system gives it an abstract name.
    where.base.sa_family = AF_UNIX;
    size = sizeof(sa_family_t);
  }
  if (bind(made.descriptor_, &where.base, size) != 0 || ::listen(made.descriptor_, 8) != 0)
    fail_socket("cannot listen");
  return made;
}

std::string raw_socket::address() const {
  any_address where{};
  socklen_t size = sizeof where;
  if (getsockname(descriptor_, &where.base, &size) != 0)
    fail_socket("getsockname");
  if (where.base.sa_family == AF_INET)
    return std::to_string(ntohs(where.tcp.sin_port));
  return {where.unix_name.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1};
}

raw_socket raw_socket::accept() const {
  raw_socket made{accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC)};
  if (made.descriptor_ < 0)
    fail_socket("accept");
  sockaddr address{};
  socklen_t size = sizeof address;
  getsockname(made.descriptor_, &address, &size);
  made.tune(address.sa_family == AF_INET ? socket_kind::tcp : socket_kind::unix_stream);
  return made;
}

raw_socket raw_socket::connect(socket_kind kind, const std::string& address) {
  raw_socket made{open_stream(kind)};
  any_address where{};
  socklen_t size = sizeof where.tcp;
  if (kind == socket_kind::tcp) {
    where.tcp.sin_family = AF_INET;
    where.tcp.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address)));
    where.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    where.unix_name.sun_family = AF_UNIX;
    std::ranges::copy(address, where.unix_name.sun_path + 1);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  }
  if (::connect(made.descriptor_, &where.base, size) != 0)
    fail_socket("connect");
  made.tune(kind);
  return made;
}

void raw_socket::tune(socket_kind kind) const {
  if (kind == socket_kind::tcp) {
    const int yes = 1;
    (void)setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return; // The system's own sizes of TCP's buffers are as good as any.
  }
  const int bytes = 4 << 20;
  constexpr std::pair<int, int> options[]{{SO_SNDBUFFORCE, SO_SNDBUF}, {SO_RCVBUFFORCE, SO_RCVBUF}};
  for (const auto& [forced, plain] : options)
    if (setsockopt(descriptor_, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0)
      (void)setsockopt(descriptor_, SOL_SOCKET, plain, &bytes, sizeof bytes);
}

void raw_socket::use_congestion_control(const std::string& name) const {
  if (setsockopt(descriptor_, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                 static_cast<socklen_t>(name.size()))
      != 0)
    fail_socket("TCP_CONGESTION " + name);
}

void raw_socket::send(std::span<iovec> parts) const {
  while (!parts.empty()) {
    const auto header = header_for(parts);
    const auto sent = sendmsg(descriptor_, &header, MSG_NOSIGNAL);
    if (sent < 0)
      fail_socket("sendmsg");
    parts = rest_of(parts, static_cast<std::size_t>(sent));
  }
}

void raw_socket::receive(std::span<iovec> parts) const {
  while (!parts.empty()) {
    auto header = header_for(parts);
    const auto got = recvmsg(descriptor_, &header, MSG_WAITALL);
    if (got <= 0)
      throw std::runtime_error{"the peer is gone"};
    parts = rest_of(parts, static_cast<std::size_t>(got));
  }
}

void raw_socket::send(const void* from, std::size_t size_bytes) const {
  iovec part{const_cast<void*>(from), size_bytes};
  send({&part, 1});
}

void raw_socket::receive(void* to, std::size_t size_bytes) const {
  iovec part{to, size_bytes};
  receive({&part, 1});
}

} // namespace troupe::bench
