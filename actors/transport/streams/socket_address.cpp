#include "actors/transport/streams/socket_address.hpp"

#include "base/quote.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <system_error>

namespace troupe {

namespace {

in6_addr v6_of(const detail::socket_address& x) {
  sockaddr_in6 v6;
  std::memcpy(&v6, &x.storage, sizeof v6);
  return v6.sin6_addr;
}

/// Returns an IPv4 address, also one that is mapped into IPv6, in the host's order of bytes.
std::optional<std::uint32_t> v4_of(const detail::socket_address& x) {
  if (x.storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &x.storage, sizeof v4);
    return ntohl(v4.sin_addr.s_addr);
  }
  const auto v6 = v6_of(x);
  if (!IN6_IS_ADDR_V4MAPPED(&v6))
    return std::nullopt;
  std::uint32_t mapped = 0;
  std::memcpy(&mapped, v6.s6_addr + 12, sizeof mapped);
  return ntohl(mapped);
}

} // namespace

bool is_loopback(const endpoint& where) {
  if (strcasecmp(where.host.c_str(), "localhost") == 0)
    return true;
  const auto addresses = detail::numeric_address(where);
  return addresses && std::ranges::all_of(*addresses, [](const detail::socket_address& x) {
           if (const auto v4 = v4_of(x))
             return *v4 >> 24 == 127;
           const auto v6 = v6_of(x);
           return bool{IN6_IS_ADDR_LOOPBACK(&v6)};
         });
}

bool is_no_host(const endpoint& where) {
  const auto addresses = detail::numeric_address(where);
  return addresses && std::ranges::any_of(*addresses, [](const detail::socket_address& x) {
           if (const auto v4 = v4_of(x))
             return *v4 == INADDR_ANY || *v4 == INADDR_BROADCAST || IN_MULTICAST(*v4);
           const auto v6 = v6_of(x);
           return IN6_IS_ADDR_UNSPECIFIED(&v6) || IN6_IS_ADDR_MULTICAST(&v6);
         });
}

result<endpoint> local_endpoint(int descriptor) {
  detail::socket_address address;
  address.size_bytes = sizeof address.storage;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.size_bytes)
      != 0)
    return {errc::io_failed, "a socket has no address: " + std::system_category().message(errno)};
  return detail::endpoint_of(address);
}

result<route> route_to(const endpoint& where) {
  auto addresses = detail::resolve(where);
  if (!addresses)
    return addresses.error();
  std::stable_partition(addresses->begin(), addresses->end(),
                        [](const auto& x) { return x.storage.ss_family == AF_INET; });
  for (const auto& address : *addresses) {
    // Connecting a datagram socket sends nothing.
    const int probe = socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool routed = probe >= 0 && connect(probe, address.get(), address.size_bytes) == 0;
    const auto here = local_endpoint(probe);
    const auto there = detail::endpoint_of(address);
    if (probe >= 0)
      close(probe);
    if (routed && here && there)
      return route{*there, here->host};
  }
  return {errc::io_failed, "no route to " + to_string(where)};
}

namespace detail {

namespace {

result<std::vector<socket_address>> look_up(const endpoint& where, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(where.port);
  const int error = getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0)
    return {errc::invalid_argument,
            "cannot resolve '" + where.host + "': " + std::string{gai_strerror(error)}};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner{found, &freeaddrinfo};
  std::vector<socket_address> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage))
      continue;
    socket_address address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size_bytes = each->ai_addrlen;
    addresses.push_back(address);
  }
  if (addresses.empty())
    return {errc::invalid_argument, quote(where.host) + " has no address"};
  return addresses;
}

} // namespace

result<std::vector<socket_address>> resolve(const endpoint& where) { return look_up(where, 0); }

std::optional<std::vector<socket_address>> numeric_address(const endpoint& where) {
  auto found = look_up(where, AI_NUMERICHOST);
  if (!found)
    return std::nullopt;
  return *std::move(found);
}

result<endpoint> endpoint_of(const socket_address& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address.storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    return endpoint{host, ntohs(v4.sin_port)};
  }
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.storage, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
    return endpoint{host, ntohs(v6.sin6_port)};
  }
  return {errc::invalid_argument, "a socket is not an IP socket"};
}

void set_port(socket_address& address, std::uint16_t port) {
  const std::size_t place = address.storage.ss_family == AF_INET
                              ? offsetof(sockaddr_in, sin_port)
                              : offsetof(sockaddr_in6, sin6_port);
  const std::uint16_t bytes = htons(port);
  std::memcpy(reinterpret_cast<std::byte*>(&address.storage) + place, &bytes, sizeof bytes);
}

} // namespace detail
} // namespace troupe
