#include "actors/transport/streams/socket_stream.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace troupe::detail {

namespace {

transfer outcome(ssize_t bytes) {
  if (bytes >= 0)
    return {transfer::status::moved, static_cast<std::size_t>(bytes), 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK)
    return {transfer::status::would_block, 0, 0};
  return {transfer::status::failed, 0, errno};
}

} // namespace

msghdr header_for(std::span<iovec> parts) {
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  return header;
}

std::unique_ptr<socket_stream> socket_stream::connect(const socket_address& where,
                                                      const socket_tuning& tuning, int& error) {
  descriptor made{::socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (made && (::connect(made.get(), where.get(), where.size_bytes) == 0 || errno == EINPROGRESS)) {
    tune(made, tuning);
    return std::unique_ptr<socket_stream>{new socket_stream{std::move(made)}};
  }
  error = errno;
  return nullptr;
}

socket_stream::socket_stream(descriptor accepted, const socket_tuning& tuning)
    : socket_(std::move(accepted)), established_(true) {
  tune(socket_, tuning);
}

result<bool> socket_stream::establish() {
  if (established_)
    return true;
  const int error = connect_error();
  if (error == EINPROGRESS)
    return false;
  if (error != 0)
    return {errc::peer_lost, "cannot be reached: " + system_text(error)};
  established_ = true;
  return true;
}

int socket_stream::connect_error() const {
  pollfd writable{socket_.get(), POLLOUT, 0};
  if (::poll(&writable, 1, 0) == 0)
    return EINPROGRESS;
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    return errno;
  if (error != 0)
    return error;
  socket_address peer;
  peer.size_bytes = sizeof peer.storage;
  if (getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size_bytes) != 0)
    return errno;
  const auto here = local_endpoint(socket_.get());
  const auto there = endpoint_of(peer);
  return here && there && *here == *there ? ECONNREFUSED : 0;
}

transfer socket_stream::write(std::span<iovec> parts) { return send(header_for(parts)); }

transfer socket_stream::read(std::span<iovec> places) {
  msghdr header = header_for(places);
  return receive(header);
}

transfer socket_stream::send(const msghdr& header) const {
  ssize_t bytes;
  do
    bytes = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (bytes < 0 && errno == EINTR);
  return outcome(bytes);
}

transfer socket_stream::receive(msghdr& header) const {
  ssize_t bytes;
  do
    bytes = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (bytes < 0 && errno == EINTR);
  if (bytes == 0)
    return {transfer::status::ended, 0, 0};
  return outcome(bytes);
}

bool socket_stream::readable() const {
  int bytes = 0;
  return ::ioctl(socket_.get(), FIONREAD, &bytes) == 0 && bytes > 0;
}

std::uint32_t socket_stream::interest(bool queued) const {
  if (!established_)
    return EPOLLOUT;
  return queued ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

void socket_stream::finish_writing() { (void)::shutdown(socket_.get(), SHUT_WR); }

void socket_stream::reset() {
  // A forked process may hold a copy of the descriptor; the peer must see the end anyway.
  if (socket_)
    (void)::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
}

std::string socket_stream::local() const {
  const auto where = local_endpoint(socket_.get());
  return where ? to_string(*where) : std::string{};
}

} // namespace troupe::detail
