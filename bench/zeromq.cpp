#include "bench/zeromq.hpp"

#include <stdexcept>

namespace troupe::bench {

namespace {

void must(bool good, const char* what) {
  if (!good)
    throw std::runtime_error{std::string{"ZeroMQ: "} + what + ": " + zmq_strerror(zmq_errno())};
}

} // namespace

zeromq_socket::zeromq_socket(int kind)
    : context_(zmq_ctx_new()), socket_(zmq_socket(context_, kind)) {
  must(socket_ != nullptr, "socket");
  // Any number of messages may wait; the benchmark's window limits them.
  const int unlimited = 0;
  for (const int option : {ZMQ_SNDHWM, ZMQ_RCVHWM, ZMQ_LINGER})
    must(zmq_setsockopt(socket_, option, &unlimited, sizeof unlimited) == 0, "option");
}

zeromq_socket::~zeromq_socket() {
  zmq_close(socket_);
  zmq_ctx_term(context_);
}

std::string zeromq_socket::listen() {
  must(zmq_bind(socket_, "tcp://127.0.0.1:*") == 0, "bind");
  char address[256];
  std::size_t size = sizeof address;
  must(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, address, &size) == 0, "endpoint");
  return address;
}

void zeromq_socket::connect(const std::string& address) {
  must(zmq_connect(socket_, address.c_str()) == 0, "connect");
}

void zeromq_socket::send(const void* from, std::size_t size_bytes, bool more) {
  must(zmq_send(socket_, from, size_bytes, more ? ZMQ_SNDMORE : 0) >= 0, "send");
}

void zeromq_socket::send_shared(std::shared_ptr<const void> from, std::size_t size_bytes,
                                bool more) {
  auto* owner = new std::shared_ptr<const void>{std::move(from)};
  zmq_msg_t message;
  zmq_msg_init_data(
    &message, const_cast<void*>(owner->get()), size_bytes,
    [](void*, void* hint) { delete static_cast<std::shared_ptr<const void>*>(hint); }, owner);
  must(zmq_msg_send(&message, socket_, more ? ZMQ_SNDMORE : 0) >= 0, "send");
}

void zeromq_socket::receive(zeromq_message& into) {
  must(zmq_msg_recv(into.get(), socket_, 0) >= 0, "receive");
}

bool zeromq_socket::readable_within(std::chrono::milliseconds time) {
  zmq_pollitem_t waited{socket_, 0, ZMQ_POLLIN, 0};
  return zmq_poll(&waited, 1, static_cast<long>(time.count())) > 0;
}

} // namespace troupe::bench
