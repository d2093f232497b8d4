// The bytes of one link, in order, both ways. What they travel over is known below this interface
// and nowhere above it.
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

/// How one attempt to read or write went. `bytes` is 0 unless status is `moved`.
struct transfer {
  enum class status { moved, would_block, ended, failed };
  status how = status::moved;
  std::size_t bytes = 0;
  int error = 0; ///< errno, where it failed.
};

/// No call blocks.
///
/// Life: establish() until it returns true, then read() and write(), finish_writing(), reset().
///
/// Thread safety: one writer (write(), and interest() from both) and one reader (the others, all on
/// the transport's thread) may work at the same time; who has one state for both directions locks
/// it.
class stream {
public:
  virtual ~stream() = default;

  /// Goes on with what precedes the first byte: a connect, an exchange of keys. True: done. False:
  /// call again when the poller reports an event of interest(false). Errors: peer_lost or another,
  /// its text without a subject: "cannot be reached: Connection refused".
  virtual result<bool> establish() = 0;

  /// Fewer bytes than were offered: there is no room now.
  virtual transfer write(std::span<iovec> parts) = 0;
  /// Fewer bytes than there was place for: there are no more now, and poll_descriptor() becomes
  /// readable when there are.
  virtual transfer read(std::span<iovec> places) = 0;
  /// Whether read() would bring something that the poller does not report, because it lies in this
  /// process already. Asked when a link has been read for long enough and others are to have their
  /// turn.
  virtual bool buffered() const { return false; }
  /// Whether bytes wait to be read.
  virtual bool readable() const = 0;
  /// What to poll for: EPOLLIN, EPOLLOUT. `queued`: something waits to be written. Asked after
  /// every read(), write() and establish(). A stream that wants to write in order to read returns
  /// EPOLLOUT for interest(false) too; an EPOLLOUT then makes read() be called.
  virtual std::uint32_t interest(bool queued) const = 0;

  /// What an errno of a transfer means, and whether the same may succeed later. The text lacks its
  /// subject: "is lost: Connection reset by peer".
  virtual failure explain(int error) const {
    return {errc::peer_lost, "is lost: " + system_text(error)};
  }
  /// What the peer has proved that it may be; nothing where it had to prove nothing.
  virtual std::optional<std::vector<role>> proved_roles() const { return std::nullopt; }

  /// Tells the peer that nothing more will be written. After a failed establish(): the reason is on
  /// its way, and read() throws away what still comes, because closing at once would destroy it.
  virtual void finish_writing() = 0;
  /// Ends both directions at once, also where a forked process holds a copy of the descriptor.
  virtual void reset() = 0;
  virtual int poll_descriptor() const = 0;

  /// The address of this side; empty where it has none.
  virtual std::string local() const = 0;
  /// Whether the peer is a process of this user on this host, and pass() works.
  virtual bool passes_descriptors() const { return false; }
  /// The next bytes written bring the peer a descriptor. At most one for each stream.
  virtual void pass(descriptor) {}
  /// What the peer passed; from now on others are closed as they come.
  virtual descriptor take_passed() { return {}; }
};

} // namespace troupe::detail
