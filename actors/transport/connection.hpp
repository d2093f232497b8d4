// Runs one link from connect or accept through the handshake and messages to its end.
#pragma once

#include "actors/transport/frames/arena_writer.hpp"
#include "actors/transport/frames/fragment_reader.hpp"
#include "actors/transport/frames/outbox.hpp"
#include "actors/transport/introduction.hpp"
#include "actors/transport/streams/poller.hpp"
#include "actors/transport/streams/stream.hpp"
#include "actors/transport/transport.hpp"
#include "base/buffer.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::detail {

/// State that all links of one transport share.
struct link_context {
  link_context(hello who, link_events what, transport_options how, std::size_t staging_bytes)
      : self(std::move(who)), events(std::move(what)), options(std::move(how)),
        staging(staging_bytes) {}

  preamble preamble_of_self() const { return {self.version, self.secret}; }
  /// Returns the hello without the secret, which only the preamble carries.
  hello hello_of_self() const {
    hello told = self;
    told.secret = 0;
    return told;
  }

  const hello self;
  const link_events events;
  const transport_options options;
  poller poll;
  buffer_pool pool;
  /// Takes bytes that a read returns beyond a frame's own memory. One buffer serves all links; each
  /// read empties it.
  std::vector<std::byte> staging;
};

///                            +---- refused or refusing --------------+
///                            |                                       v
///   establishing --> greeting --> open --close()--> flushing --> lingering --> finished
///
/// establishing: the stream is being made. greeting: preambles and hellos are exchanged. flushing:
/// queued frames are sent. lingering: the peer may read to the end, because closing at once would
/// destroy bytes under way. Every phase ends in `finished` when its deadline passes or the stream
/// breaks.
///
/// Thread safety: any thread may call out() and mute(); the other members belong to the transport's
/// thread. No call reports to `events` after `lost` or `rejected`.
class connection {
public:
  using clock = outbox::clock;

  connection(link_id id, link_context& context, std::string peer_address);
  ~connection();

  void begin_connect(const result<std::vector<socket_address>>& addresses, clock::time_point now);
  void begin_accepted(std::unique_ptr<stream> accepted, clock::time_point now);
  /// Handles `events` that the poller reported.
  void ready(std::uint32_t events, clock::time_point now);
  /// Handles the outcome of a sender's write. May make callbacks.
  void check_outbox(clock::time_point now);
  /// Writes corked frames; makes no callback. Returns whether check_outbox() must be called.
  bool uncork();
  void begin_close(clock::time_point now);
  /// Returns whether bytes are left that the poller does not report; ready() must then be called
  /// again.
  bool unread() const;
  /// Drops the link if it is overdue; sends a sign of life if it is idle.
  void check_time(clock::time_point now);
  clock::time_point next_check() const;
  /// Ends the link at once.
  void drop(failure why);

  link_id id() const { return id_; }
  bool finished() const { return phase_ == phase::finished; }
  bool accepted() const { return accepted_; }
  outbox& out() { return out_; }
  /// Discards everything that arrives from now on.
  void mute() { muted_ = true; }

private:
  enum class phase { establishing, greeting, open, flushing, lingering, finished };

  void try_next_address(clock::time_point now);
  bool watch(std::unique_ptr<stream> made);
  void establish(clock::time_point now);
  void part(clock::time_point now);
  void begin_greeting(clock::time_point now);
  void read(clock::time_point now);
  void take(std::size_t direct_bytes, std::span<const std::byte> staged, clock::time_point now);
  void deliver(clock::time_point now);
  /// Handles the peer's first message, a hello or a refusal.
  void take_first(const result<message>& first, clock::time_point now);
  void open(const hello& peer);
  void bring_arena();
  void refuse(const peer_rejection& why, clock::time_point now);
  void garbage(const failure& why, clock::time_point now);
  void end_of_stream(int error);
  void linger();
  void report_end(const failure& why);
  bool discards() const {
    return muted_ || phase_ == phase::flushing || phase_ == phase::lingering;
  }
  /// Returns a failure whose text begins with the peer's address.
  failure because(errc code, const std::string& what) const;
  clock::time_point keep_alive_time() const;

  const link_id id_;
  link_context& context_;
  const std::string peer_;
  bool accepted_ = false;
  phase phase_ = phase::establishing;
  std::unique_ptr<stream> stream_;
  outbox out_;
  introduction introduction_; ///< The peer's.
  fragment_reader reader_;
  std::unique_ptr<arena_writer> arena_;   ///< Held until the peer has mapped it.
  std::vector<socket_address> addresses_; ///< Not tried yet, in reverse order.
  failure connect_failure_;
  clock::time_point deadline_; ///< For every phase but `open`.
  clock::time_point last_read_;
  clock::time_point next_trim_ = clock::time_point::max(); ///< For the arena, once in use.
  bool opened_ = false;
  bool reported_ = false;
  std::optional<failure> closed_because_;
  std::atomic<bool> muted_ = false;
};

} // namespace troupe::detail
