// Wraps ZeroMQ's sockets and messages, each with one owner, and lists its fastest settings.
#pragma once

#include <zmq.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace troupe::bench {

/// A message with one owner.
class zeromq_message {
public:
  zeromq_message() { zmq_msg_init(&message_); }
  ~zeromq_message() { zmq_msg_close(&message_); }
  zeromq_message(const zeromq_message&) = delete;
  zeromq_message& operator=(const zeromq_message&) = delete;

  const void* data() const { return zmq_msg_data(const_cast<zmq_msg_t*>(&message_)); }
  std::size_t size() const { return zmq_msg_size(&message_); }
  zmq_msg_t* get() { return &message_; }

private:
  zmq_msg_t message_;
};

/// Each has a context, and so a thread of ZeroMQ, of its own. Errors throw std::runtime_error.
class zeromq_socket {
public:
  /// `kind`: ZMQ_DEALER or ZMQ_ROUTER.
  explicit zeromq_socket(int kind);
  ~zeromq_socket();
  zeromq_socket(const zeromq_socket&) = delete;
  zeromq_socket& operator=(const zeromq_socket&) = delete;

  /// Listens on a port of loopback that the system chooses. Returns its address.
  std::string listen();
  void connect(const std::string& address);

  /// Copies the bytes: for small parts.
  void send(const void* from, std::size_t size_bytes, bool more);
  /// Sends the bytes from where they are, and keeps them alive until they were sent.
  void send_shared(std::shared_ptr<const void> from, std::size_t size_bytes, bool more);
  void receive(zeromq_message& into);
  bool readable_within(std::chrono::milliseconds time);

private:
  void* context_;
  void* socket_;
};

/// Variables with which malloc never returns memory to the system; otherwise the receiver takes
/// page faults on each large message.
inline const std::map<std::string, std::string> malloc_that_keeps{
  {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
  {"MALLOC_TRIM_THRESHOLD_", "4294967296"},
  {"MALLOC_TOP_PAD_", "67108864"}};

} // namespace troupe::bench
