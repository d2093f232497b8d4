// Moves bytes over blocking stream sockets: plain loops as a measure for other ways.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>

namespace troupe::bench {

/// Unix: buffers of 4 MB, if the system allows it; its own 208 KB cost a third of the rate.
enum class socket_kind { tcp, unix_stream };

class raw_socket {
public:
  raw_socket() = default;
  explicit raw_socket(int descriptor) : descriptor_(descriptor) {}
  ~raw_socket();
  raw_socket(raw_socket&& other) noexcept;
  raw_socket& operator=(raw_socket&& other) noexcept;

  /// Returns a listener on loopback, on a port or name that the system chooses.
  static raw_socket listen(socket_kind kind);
  /// Returns the place of a listener, as connect() takes it.
  std::string address() const;
  raw_socket accept() const;
  static raw_socket connect(socket_kind kind, const std::string& address);

  /// Sets it for this socket alone. Throws std::runtime_error if the system lacks or forbids it.
  void use_congestion_control(const std::string& name) const;

  /// Both block until all is moved; throw std::runtime_error at the end of the stream.
  void send(std::span<iovec> parts) const;
  void receive(std::span<iovec> parts) const;
  void send(const void* from, std::size_t size_bytes) const;
  void receive(void* to, std::size_t size_bytes) const;

private:
  void tune(socket_kind kind) const;

  int descriptor_ = -1;
};

} // namespace troupe::bench
