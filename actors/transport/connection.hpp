// One link from the first byte to the last: connect or accept, handshake, messages, end.
#pragma once

#include "actors/transport/frames/arena_writer.hpp"
#include "actors/transport/frames/chunk_reader.hpp"
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

/// What all links of one transport share.
struct link_context {
  link_context(hello who, link_events what, transport_options how, std::size_t staging_bytes)
      : self(std::move(who)), events(std::move(what)), options(std::move(how)),
        staging(staging_bytes) {}

  preamble preamble_of_self() const { return {self.version, self.secret}; }
  /// The preamble has told the secret, or was not to.
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
  /// What a read brings beyond the place that waits for it; one for all links, emptied at once.
  std::vector<std::byte> staging;
};

///                            +---- refused or refusing --------------+
///                            |                                       v
///   establishing --> greeting --> open --close()--> flushing --> lingering --> finished
///
/// establishing: the stream is being made; greeting: preambles and hellos; flushing: what was
/// queued goes out; lingering: the peer may read it up to the end, because closing at once would
/// destroy what is under way. Every phase ends in `finished` when its deadline passes or the stream
/// breaks.
///
/// Thread safety: out() and mute() from any thread, the rest on the transport's thread. No call
/// reports to `events` after `lost` or `rejected` was reported.
class connection {
public:
  using clock = outbox::clock;

  connection(link_id id, link_context& context, std::string peer_address);
  ~connection();

  void begin_connect(const result<std::vector<socket_address>>& addresses, clock::time_point now);
  void begin_accepted(std::unique_ptr<stream> accepted, clock::time_point now);
  /// The poller reported `events`.
  void ready(std::uint32_t events, clock::time_point now);
  /// Deals with what a sender's write ran into. May make callbacks.
  void check_outbox(clock::time_point now);
  /// Writes what was corked; makes no callback. Returns whether check_outbox() has something to do.
  bool uncork();
  void begin_close(clock::time_point now);
  /// Whether there is more to read that the poller does not report: ready() is to be called again.
  bool unread() const;
  /// Ends what is overdue, keeps alive what is idle.
  void check_time(clock::time_point now);
  clock::time_point next_check() const;
  /// Ends the link at once.
  void drop(failure why);

  link_id id() const { return id_; }
  bool finished() const { return phase_ == phase::finished; }
  bool accepted() const { return accepted_; }
  outbox& out() { return out_; }
  /// Nothing that arrives is of interest any more.
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
  /// The first message, a hello or a refusal.
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
  /// A failure whose text begins with the peer's address.
  failure because(errc code, const std::string& what) const;
  clock::time_point keep_alive_time() const;

  const link_id id_;
  link_context& context_;
  const std::string peer_;
  bool accepted_ = false;
  phase phase_ = phase::establishing;
  std::unique_ptr<stream> stream_;
  outbox out_;
  introduction introduction_; ///< Of the peer.
  chunk_reader reader_;
  std::unique_ptr<arena_writer> arena_;   ///< Until the peer has mapped it.
  std::vector<socket_address> addresses_; ///< Not tried yet, last first.
  failure connect_failure_;
  clock::time_point deadline_; ///< Of every phase but open.
  clock::time_point last_read_;
  clock::time_point next_trim_ = clock::time_point::max(); ///< Of the arena, once it is in use.
  bool opened_ = false;
  bool reported_ = false;
  std::optional<failure> closed_because_;
  std::atomic<bool> muted_ = false;
};

} // namespace troupe::detail
