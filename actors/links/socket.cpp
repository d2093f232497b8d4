#include "actors/links/socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace troupe::detail {

namespace {

void set_option(int socket, int level, int name, int value) {
  // Only speed or early detection depends on these options; a link works without them.
  (void)setsockopt(socket, level, name, &value, sizeof value);
}

msghdr header_for(std::span<iovec> parts) {
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  return header;
}

transfer outcome(ssize_t bytes) {
  if (bytes >= 0)
    return {transfer::status::moved, static_cast<std::size_t>(bytes), 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK)
    return {transfer::status::would_block, 0, 0};
  return {transfer::status::failed, 0, errno};
}

failure listen_failure(const endpoint& where, int error) {
  const errc code = error == EADDRINUSE      ? errc::in_use
                    : error == EADDRNOTAVAIL ? errc::invalid_argument
                                             : errc::io_failed;
  return {code, "cannot listen on " + to_string(where) + ": " + system_text(error)};
}

} // namespace

descriptor& descriptor::operator=(descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    value_ = other.release();
  }
  return *this;
}

void descriptor::reset() {
  if (value_ >= 0)
    ::close(std::exchange(value_, -1));
}

std::string system_text(int error) { return std::system_category().message(error); }

stream_socket stream_socket::connect(const socket_address& where, int& error) {
  descriptor made{::socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (made && (::connect(made.get(), where.get(), where.size_bytes) == 0 || errno == EINPROGRESS))
    return stream_socket{std::move(made)};
  error = errno;
  return {};
}

int stream_socket::connect_error() const {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(descriptor_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    return errno;
  if (error != 0)
    return error;
  socket_address peer;
  peer.size_bytes = sizeof peer.storage;
  if (getpeername(descriptor_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size_bytes)
      != 0)
    return errno;
  const auto here = local_endpoint(descriptor_.get());
  const auto there = endpoint_of(peer);
  return here && there && *here == *there ? ECONNREFUSED : 0;
}

void stream_socket::tune(const socket_tuning& tuning) const {
  const int socket = descriptor_.get();
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(tuning.user_timeout.count()));
  if (!tuning.congestion_control.empty())
    (void)setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, tuning.congestion_control.data(),
                     static_cast<socklen_t>(tuning.congestion_control.size()));
}

transfer stream_socket::write(std::span<iovec> parts) const {
  const msghdr header = header_for(parts);
  ssize_t bytes;
  do
    bytes = ::sendmsg(descriptor_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (bytes < 0 && errno == EINTR);
  return outcome(bytes);
}

transfer stream_socket::read(std::span<iovec> places) const {
  msghdr header = header_for(places);
  ssize_t bytes;
  do
    bytes = ::recvmsg(descriptor_.get(), &header, MSG_DONTWAIT);
  while (bytes < 0 && errno == EINTR);
  if (bytes == 0)
    return {transfer::status::ended, 0, 0};
  return outcome(bytes);
}

bool stream_socket::readable() const {
  int bytes = 0;
  return ::ioctl(descriptor_.get(), FIONREAD, &bytes) == 0 && bytes > 0;
}

void stream_socket::finish_writing() const { (void)::shutdown(descriptor_.get(), SHUT_WR); }

void stream_socket::reset() {
  // A process forked meanwhile may hold a copy of the descriptor; the peer must see the end anyway.
  if (descriptor_)
    (void)::shutdown(descriptor_.get(), SHUT_RDWR);
  descriptor_.reset();
}

result<descriptor> open_listener(const endpoint& where) {
  const auto addresses = resolve(where);
  if (!addresses)
    return addresses.error();
  int error = 0;
  for (const socket_address& address : *addresses) {
    descriptor made{
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (made) {
      // Lets a restarted process have its port back while old connections fade away.
      set_option(made.get(), SOL_SOCKET, SO_REUSEADDR, 1);
      if (::bind(made.get(), address.get(), address.size_bytes) == 0
          && ::listen(made.get(), SOMAXCONN) == 0)
        return made;
    }
    error = errno;
  }
  return listen_failure(where, error);
}

result<void> adopt_listener(const descriptor& socket) {
  int listens = 0;
  socklen_t size = sizeof listens;
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0
      || flags < 0)
    return {errc::invalid_argument,
            "not a socket that listens: descriptor " + std::to_string(socket.get())};
  (void)::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  (void)::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  return {};
}

} // namespace troupe::detail
