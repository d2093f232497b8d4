#include "actors/transport/streams/unix_stream.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

namespace troupe::detail {

namespace {

/// The system's default holds less than one fragment. Measured, 1 MiB moves half as much again.
constexpr int send_buffer_bytes = 1 << 20;

std::optional<ucred> credentials(const descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::nullopt;
  return peer;
}

descriptor unix_socket() {
  return descriptor{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

/// Room for only one descriptor: the system closes others, and reports that.
union passed_buffer {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

} // namespace

socket_address unix_address(const endpoint& beside) {
  const std::string name = "troupe:" + to_string(beside);
  sockaddr_un made{};
  made.sun_family = AF_UNIX;
  // An abstract name: sun_path[0] is 0, and the length counts. An IP address always fits.
  const std::size_t length = std::min(name.size(), sizeof made.sun_path - 1);
  std::memcpy(made.sun_path + 1, name.data(), length);
  socket_address address;
  address.size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  std::memcpy(&address.storage, &made, sizeof made);
  return address;
}

std::vector<socket_address> unix_addresses_for(const socket_address& where) {
  const auto exact = endpoint_of(where);
  if (!exact)
    return {};
  std::vector<socket_address> found{unix_address(*exact)};
  if (is_loopback(*exact))
    for (const char* wildcard : {"0.0.0.0", "::"})
      found.push_back(unix_address({wildcard, exact->port}));
  return found;
}

descriptor open_unix_listener(const endpoint& beside) {
  const socket_address address = unix_address(beside);
  descriptor made = unix_socket();
  if (!made || ::bind(made.get(), address.get(), address.size_bytes) != 0
      || ::listen(made.get(), SOMAXCONN) != 0)
    return {};
  return made;
}

unix_stream::unix_stream(descriptor owned, std::string local)
    : socket_stream(std::move(owned)), local_(std::move(local)) {
  established_ = true; // Such a socket connects at once.
  set_option(socket_, SOL_SOCKET, SO_SNDBUF, send_buffer_bytes);
}

std::unique_ptr<unix_stream> unix_stream::connect(const socket_address& where) {
  descriptor made = unix_socket();
  if (!made || ::connect(made.get(), where.get(), where.size_bytes) != 0)
    return nullptr;
  return accept(std::move(made), {});
}

std::unique_ptr<unix_stream> unix_stream::accept(descriptor accepted, std::string local) {
  std::unique_ptr<unix_stream> made{new unix_stream{std::move(accepted), std::move(local)}};
  return made->of_this_user() ? std::move(made) : nullptr;
}

transfer unix_stream::write(std::span<iovec> parts) {
  if (!passing_)
    return socket_stream::write(parts);
  passed_buffer buffer{};
  msghdr header = header_for(parts);
  header.msg_control = buffer.bytes.data();
  header.msg_controllen = buffer.bytes.size();
  cmsghdr* const passing = CMSG_FIRSTHDR(&header);
  passing->cmsg_level = SOL_SOCKET;
  passing->cmsg_type = SCM_RIGHTS;
  passing->cmsg_len = CMSG_LEN(sizeof(int));
  const int value = passing_.get();
  std::memcpy(CMSG_DATA(passing), &value, sizeof value);
  const transfer went = send(header);
  if (went.bytes != 0)
    passing_.reset();
  return went;
}

transfer unix_stream::read(std::span<iovec> places) {
  if (taken_)
    return socket_stream::read(places); // Without a place for descriptors the system closes them.
  passed_buffer buffer{};
  msghdr header = header_for(places);
  header.msg_control = buffer.bytes.data();
  header.msg_controllen = CMSG_LEN(sizeof(int));
  const transfer got = receive(header);
  if (got.how == transfer::status::moved)
    keep_passed(header);
  return got;
}

/// Keeps the first descriptor; keeps none if more arrived than there is room for.
void unix_stream::keep_passed(msghdr& header) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS)
      continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int value = -1;
      std::memcpy(&value, CMSG_DATA(each) + i * sizeof value, sizeof value);
      descriptor came{value};
      if (!std::exchange(taken_, true))
        passed_ = std::move(came);
    }
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    taken_ = true;
    passed_.reset();
  }
}

descriptor unix_stream::take_passed() {
  taken_ = true;
  return std::move(passed_);
}

bool unix_stream::of_this_user() const {
  const auto peer = credentials(socket_);
  return peer && peer->uid == ::geteuid();
}

std::string unix_stream::peer() const {
  const auto peer = credentials(socket_);
  return "process " + std::to_string(peer ? peer->pid : 0);
}

} // namespace troupe::detail
