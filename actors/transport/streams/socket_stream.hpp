// Implements a stream over one socket: TCP, and the parts that Unix sockets share with it.
#pragma once

#include "actors/transport/streams/socket_address.hpp"
#include "actors/transport/streams/stream.hpp"

#include <memory>

namespace troupe::detail {

class socket_stream : public stream {
public:
  /// Begins to connect. Returns null if that failed at once; `error` is then an errno.
  static std::unique_ptr<socket_stream> connect(const socket_address& where,
                                                const socket_tuning& tuning, int& error);
  /// Takes a connection that was accepted.
  socket_stream(descriptor accepted, const socket_tuning& tuning);

  result<bool> establish() override;
  transfer write(std::span<iovec> parts) override;
  transfer read(std::span<iovec> places) override;
  bool readable() const override;
  std::uint32_t interest(bool queued) const override;
  void finish_writing() override;
  void reset() override;
  int poll_descriptor() const override { return socket_.get(); }
  std::string local() const override;

protected:
  explicit socket_stream(descriptor connecting) : socket_(std::move(connecting)) {}

  /// Returns an errno: 0 once connected, EINPROGRESS before. A socket that reached itself counts as
  /// refused: the system may choose the very port that this process connects to.
  int connect_error() const;
  transfer send(const msghdr& header) const;
  transfer receive(msghdr& header) const;

  descriptor socket_;
  bool established_ = false;
};

/// Returns the header that sendmsg and recvmsg take.
msghdr header_for(std::span<iovec> parts);

} // namespace troupe::detail
