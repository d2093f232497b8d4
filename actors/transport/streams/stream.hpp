// Carries the bytes of one link, in order, both ways. Only code below this interface knows the
// medium.
#pragma once

#include "actors/transport/streams/socket.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::detail {

/// The outcome of one read or write. `bytes` is 0 unless status is `moved`.
struct transfer {
  enum class status { moved, would_block, ended, failed };
  status how = status::moved;
  std::size_t bytes = 0;
  int error = 0; ///< errno, if it failed.
};

/// No call blocks.
///
/// Life: establish() until it returns true, then read() and write(), finish_writing(), reset().
///
/// Thread safety: one writer and one reader may work at the same time. write() belongs to the
/// writer, interest() to both, and the other members to the reader on the transport's thread. A
/// stream with one state for both directions locks it.
class stream {
public:
  virtual ~stream() = default;

  /// Continues the steps before the first byte: a connect, an exchange of keys. Returns true when
  /// done. False: call again when the poller reports an event of interest(false). Errors: peer_lost
  /// or another, with a text without subject: "cannot be reached: Connection refused".
  virtual result<bool> establish() = 0;

  /// Writes bytes. Fewer than were offered means that there is no room now.
  virtual transfer write(std::span<iovec> parts) = 0;
  /// Reads bytes. Fewer than there was place for means that no more are there now.
  /// poll_descriptor() becomes readable when more arrive.
  virtual transfer read(std::span<iovec> places) = 0;
  /// Returns whether read() would bring bytes that the poller does not report, because they are in
  /// this process already. Asked when other links are to have their turn.
  virtual bool buffered() const { return false; }
  /// Returns whether bytes wait to be read.
  virtual bool readable() const = 0;
  /// Returns the events to poll for: EPOLLIN, EPOLLOUT. `queued`: bytes wait to be written. Asked
  /// after every read(), write() and establish(). A stream that must write in order to read returns
  /// EPOLLOUT for interest(false) too; on EPOLLOUT, read() is then called.
  virtual std::uint32_t interest(bool queued) const = 0;

  /// Returns the meaning of a transfer's errno, and whether a retry may succeed. The text lacks its
  /// subject: "is lost: Connection reset by peer".
  virtual failure explain(int error) const {
    return {errc::peer_lost, "is lost: " + system_text(error)};
  }
  /// Returns the roles that the peer has proved; nullopt if it had to prove none.
  virtual std::optional<std::vector<role>> proved_roles() const { return std::nullopt; }

  /// Tells the peer that no more will be written. After a failed establish() the reason is on its
  /// way. read() then discards further input, because closing at once would destroy the reason.
  virtual void finish_writing() = 0;
  /// Ends both directions at once, even if a forked process holds a copy of the descriptor.
  virtual void reset() = 0;
  virtual int poll_descriptor() const = 0;

  /// Returns the address of this side; empty if it has none.
  virtual std::string local() const = 0;
  /// Returns whether the peer is a process of this user on this host, so that pass() works.
  virtual bool passes_descriptors() const { return false; }
  /// Sends the peer a descriptor with the next bytes written. At most one for each stream.
  virtual void pass(descriptor) {}
  /// Returns the descriptor that the peer passed; later ones are closed on arrival.
  virtual descriptor take_passed() { return {}; }
};

} // namespace troupe::detail
