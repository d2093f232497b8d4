// Holds the ports of one member: the hub that decides, and the lock that the links and the thread
// of the callbacks share.
#pragma once

#include "actors/protocol/channel/channel_hub.hpp"
#include "actors/training/ports.hpp"
#include "base/clock.hpp"
#include "base/log_sink.hpp"
#include "base/notice.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The surroundings of the ports of a member.
struct port_surroundings {
  std::function<time_point()> clock = {};
  /// Has deliver() called soon on the owner's thread, after the earlier work of that thread. It
  /// is not called again before deliver().
  std::function<void()> wake = {};
  /// Ends the member, and with it the job.
  std::function<void(const failure&)> fail = {};
  /// Asks for values; values() follows on the owner's thread.
  std::function<void(std::vector<std::vector<std::uint64_t>>)> ask = {};
  notice_sink waits = {}; ///< Takes notices of lanes that wait for credit ...
  log_sink log = {};      ///< ... and this one the lines on them.
  std::string whose = {}; ///< "worker 1", for names of calls; empty: the process says it.
  /// Why next() must not wait; empty: it may. next() then throws "port 'came' waits ...".
  std::string why_no_wait = {};
};

/// Thread-safe, but for begin(). The owner's thread alone calls bind(), deliver() and values(), and
/// the ports.
class port_room final : channel_effects {
public:
  port_room(const member_id& self, std::vector<channel_end> ends);
  ~port_room() override;

  /// Sets the surroundings, before all calls but bind() and bind_pulls(). The links are called
  /// under the lock of the room, and the functions of `around` are not, except its clock.
  void begin(port_surroundings around, std::shared_ptr<lane_links> links);

  // -- the owner's thread --
  /// Connects a port with its end. The port must live until the last call of this thread.
  void bind(std::size_t end, port_base& port);
  /// Connects ports for values.
  void bind_pulls(port_base& port);
  /// Throws std::invalid_argument if an `in` port has no `take`. Call it for owners that cannot
  /// call in::next().
  void check_takes() const;
  /// Calls the callbacks of the events that are in the inbox now, once all ports are bound, and of
  /// `most` events at most. Calls wake() if the inbox has events then. Parcels of a port without
  /// `take` stay for in::next(), and so do events of that port that follow them.
  void deliver(std::size_t most = std::numeric_limits<std::size_t>::max());
  /// Hands values that were asked for to the port that asked.
  void values(const_tensors all);

  /// Ends the member for this reason.
  void stop_with(const failure& why);

  // -- the links' threads --
  void listed(const std::vector<member_address>& all);
  void opened(lane_link link);
  /// Takes a link that another member made, and returns its name.
  lane_link accepted(const member_id& from);
  void received(lane_link link, channel_message what);
  /// A link ended. A refusal by the peer, contract_broken, ends the member.
  void closed(lane_link link, const std::optional<failure>& why);
  void tick();

  // -- any thread --
  /// Returns the counts of each port that is bound, as the node that has it reports them.
  std::vector<port_counters> counters(const std::string& node) const;
  /// Returns the time that the owner has waited in next(), with a wait that has not ended.
  std::chrono::microseconds waited() const;
  const std::vector<channel_end>& ends() const { return hub_.ends(); }

private:
  class line;
  class hub_call;
  class calling;
  /// Messages that go out when the lock is free.
  struct messages {
    bool wakes = false; ///< The inbox has events of which the owner does not know.
    std::vector<std::pair<log_level, std::string>> lines;
    std::vector<notice> notices;
    std::optional<failure> failed;
  };
  /// The wait of next() for parcels of one port, since the last parcel.
  struct parcel_wait {
    std::chrono::nanoseconds waited{0}; ///< Without a wait that has not ended.
    bool is_told = false;
  };

  void connect(lane_link link, const member_address& to) override;
  void send(lane_link link, channel_message what) override;
  void refuse(lane_link link, const failure& why) override;
  void close(lane_link link) override;
  void wake() override;
  void waits(std::size_t end, std::uint32_t peer, const std::string& text) override;
  void fail(const failure& why) override;

  void call(channel_event& what);
  std::optional<channel_event> take_next();
  std::optional<channel_event> wait_for_next(std::size_t end,
                                             std::chrono::steady_clock::time_point until,
                                             std::optional<std::size_t>& rest);
  void tell_of_parcel_wait();
  void end_parcel_wait(std::size_t end);
  bool keep(channel_event& what);
  void note_kept(std::size_t end);
  void tell_of_kept();
  std::optional<std::pair<parcel_message, std::uint32_t>> next(std::size_t end,
                                                               std::chrono::nanoseconds timeout);

  mutable std::mutex mutex_;
  messages said_;
  std::condition_variable came_;
  channel_hub hub_;
  port_surroundings around_;
  std::shared_ptr<lane_links> links_;
  std::vector<port_base*> ports_;               ///< One for each end; null: it is not bound yet.
  std::vector<std::deque<channel_event>> kept_; ///< One for each end: events for in::next().
  std::vector<std::optional<time_point>> kept_since_; ///< Since when there are some.
  std::vector<bool> is_kept_told_;
  std::vector<std::unique_ptr<line>> lines_;
  port_base* asking_ = nullptr; ///< The port whose values are under way.
  bool is_woken_ = false;       ///< deliver() will be called.
  bool is_calling_ = false;     ///< A callback of the program runs. Of the owner's thread alone.
  std::chrono::nanoseconds waited_{0};
  std::optional<time_point> waits_since_; ///< Set while next() waits, ...
  std::size_t waits_at_ = 0;              ///< ... for a parcel of this end.
  std::vector<parcel_wait> parcel_waits_; ///< One for each end.
};

} // namespace troupe
