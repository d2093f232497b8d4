#include "bench/links/network_namespace.hpp"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace troupe::bench {

namespace {

[[noreturn]] void fail_congestion(const std::string& what) {
  throw std::runtime_error{"--congestion: " + what + ": " + std::system_category().message(errno)};
}

void raise_loopback() {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  const bool up = any >= 0 && ioctl(any, SIOCSIFFLAGS, &loopback) == 0;
  if (!up)
    fail_congestion("cannot raise the loopback of a new network");
  close(any);
}

} // namespace

void enter_network_with(const std::string& congestion_control) {
  // A user that is not root may still be the root of a user namespace.
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    fail_congestion("cannot make a network namespace");
  raise_loopback();
  std::ofstream setting{"/proc/sys/net/ipv4/tcp_congestion_control"};
  setting << congestion_control << std::flush;
  if (!setting)
    fail_congestion("the system has no '" + congestion_control + "' or forbids it");
}

} // namespace troupe::bench
