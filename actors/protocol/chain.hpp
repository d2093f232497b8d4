// Runs chain replication for one replica: which log entries it has, forwards and commits. Chain
// replication (van Renesse, Schneider 2004) with numbered configurations, seals and leases in place
// of a perfect failure detector. A plain state machine; the caller keeps the entries, by index.
#pragma once

#include "base/clock.hpp"
#include "serialization/ids.hpp"
#include "serialization/replication.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace troupe {

struct chain_options {
  /// Earliest time at which the first uncommitted entry is resent; longer than a round trip over
  /// the chain. The delay doubles with each resend, at most to a quarter of stalled_time. It is at
  /// least twice the time that the last entries took, because a slow or stopped replica has to read
  /// every copy.
  std::chrono::milliseconds resend_time{100};
  /// Entries in flight to the next replica.
  std::uint64_t window = 1024;
  /// The replica is `stalled` when its next replica, or for a joiner the tail, has been silent for
  /// this time. Longer than all but the largest entries take.
  std::chrono::milliseconds stalled_time{2000};
  /// The tail waits for a joiner that lacks at most this many entries.
  std::uint64_t sync_lag = 1024;
  /// Reads are refused unless the coordinator has echoed a status that was sent within this time.
  /// The coordinator removes a silent server later than this, by the clocks' largest difference. 0:
  /// reads need no lease, as where each chain has one server, which no other replaces while it is
  /// silent.
  std::chrono::milliseconds lease_time{800};
};

// -- effects --

/// Send entry `what.index` to `to`.
struct append_effect {
  member_id to;
  append_message what;
};
struct chain_message_effect {
  member_id to;
  std::variant<committed_message, joined_message> what;
};
/// Entries up to `index` are committed: apply them in order and reply to their pushes.
struct commit_effect {
  std::uint64_t index = 0;
};
/// Entries beyond `last` will not be committed through this replica: drop them, and refer their
/// pushers to the head.
struct truncate_effect {
  std::uint64_t last = 0;
};
/// Entries up to `index` are not sent again: free their memory once they are applied.
struct release_effect {
  std::uint64_t index = 0;
};
/// Ask the tail for a copy of its values, then call install().
struct request_copy_effect {
  member_id from;
  config_id config;
};

using chain_effect = std::variant<append_effect, chain_message_effect, commit_effect,
                                  truncate_effect, release_effect, request_copy_effect>;
using chain_effects = std::vector<chain_effect>;

/// Only committed entries are applied to values. A replica that is removed from its chain therefore
/// holds a past state of the shard, never a wrong one, and rejoins with only the entries that it
/// lacks. This holds within one generation; for another generation the caller makes another
/// replica, from that generation's initial state.
///
///     spare --active: joiner--> copying --install()--> joiner --active: member--> member
///       ^-----------------------active: neither--------------------------------------|
///
/// Invariants:
/// (1) a member's log contains its successor's log. Held by: assert in next_has(); check_members()
///     in cli/sim/chain_servers.cpp.
/// (2) committed() never shrinks, and is at most last(). Held by: assert in commit().
/// (3) a committed entry is in the log of every member of this configuration and of each later one.
///     Held by: check_members() in cli/sim/chain_servers.cpp.
/// (4) once a later configuration is proposed, this replica appends no entry of an earlier one,
///     commits none as the tail, and answers no read. Held by: assert in append(), take_next(),
///     commit_what_all_have(); client_receive() in cli/sim/chain_clients.cpp.
class chain {
public:
  /// `committed`: index of the state that the caller holds. `complete`: whether members of this
  /// generation start from that state (fresh or restored partitions); else the replica has to join.
  chain(member_id self, generation_id generation, std::uint64_t committed, bool complete,
        chain_options options = {});

  // -- desired state from the coordinator --
  /// Seals every configuration before `config`, which the coordinator has proposed.
  void propose(config_id config);
  /// Activates `config`. An older or the present one changes nothing; one of another generation
  /// only seals this replica.
  void activate(const chain_config& config, time_point now, chain_effects& effects);
  /// Extends the lease: the coordinator has heard the status that this process sent at `stamp`, by
  /// this process's clock.
  void renew(time_point stamp);

  // -- entries --
  bool is_head() const { return position_ == 0U; }
  bool leads() const { return is_head() && !sealed(); }
  /// Appends the next entry, last() + 1. Requires: leads().
  void append(time_point now, chain_effects& effects);
  /// Returns whether the entry is the next one. If so, the caller keeps it, by its index, before it
  /// carries out the effects.
  bool receive(const member_id& from, const append_message& what, time_point now,
               chain_effects& effects);
  void receive(const member_id& from, const committed_message& what, time_point now,
               chain_effects& effects);
  void receive(const member_id& from, const joined_message& what, time_point now,
               chain_effects& effects);
  /// Resends lost entries, and detects where that does not help.
  void tick(time_point now, chain_effects& effects);

  // -- copies --
  /// Returns committed(), the index of the state to copy to `from`; nullopt if `from` may not join
  /// now or already has a copy.
  std::optional<std::uint64_t> copy_for(const member_id& from, config_id config);
  /// From now on commits only entries that the joiner has, if one was given a copy. This bounds the
  /// log that is kept for the joiner.
  void wait_for_joiner() { waits_for_joiner_ = waits_for_joiner_ || copied_; }
  /// Notes that the copy makes progress: a part arrived, or the caller is busy with local state.
  void copy_advanced(time_point now) { heard_at_ = now; }
  /// Takes a copy of the state at `index`. Returns whether the caller is to replace its own state
  /// with the copy, before it carries out the effects.
  bool install(config_id config, std::uint64_t index, time_point now, chain_effects& effects);

  // -- reads --
  /// Returns whether applied state may be read. On the tail it includes every push that was ever
  /// acknowledged.
  bool may_read(time_point now) const;
  bool is_tail() const { return position_ && *position_ + 1 == config_.members.size(); }

  std::uint64_t last() const { return last_; }
  std::uint64_t committed() const { return committed_; }
  const chain_config& config() const { return config_; }
  generation_id generation() const { return generation_; }
  chain_status status() const;

private:
  /// The replica that this one sends entries to: the next member or, from the tail, the joiner.
  struct downstream {
    member_id to;
    std::uint64_t has = 0;    ///< Its last entry, by its own or the tail's message.
    std::uint64_t sent = 0;   ///< Last entry sent to it, since the last resend.
    time_point since{0};      ///< When `has` grew, an entry became missing, or one was resent.
    time_point grew_at{0};    ///< As `since`, without resends.
    std::uint64_t window = 0; ///< Entries in flight: one while some seem lost.
    time_point patience{0};   ///< Time after which its first missing entry is resent.
    time_point heard_at{0};   ///< Its last commit message: it may wait for others itself.
  };

  bool sealed() const { return sealed_ > config_.config; }
  bool is_current(config_id config) const { return config == config_.config && !sealed(); }
  bool is_joiner() const { return config_.joiner == self_; }
  bool is_member(const member_id& who) const;
  /// Returns the replica that sends entries to this one.
  std::optional<member_id> upstream() const;
  void become_spare(chain_effects& effects);
  void request_join(chain_effects& effects) const;
  bool is_stalled(time_point now) const;
  void take_next(time_point now, chain_effects& effects);
  void follow_with(const member_id& next, std::uint64_t has, time_point now);
  void send_next(chain_effects& effects);
  time_point patience_for(time_point span) const;
  void next_has(std::uint64_t index, time_point now, chain_effects& effects);
  void commit_what_all_have(time_point now, chain_effects& effects);
  void commit(std::uint64_t index, time_point now, chain_effects& effects);
  void release(chain_effects& effects);

  member_id self_;
  generation_id generation_;
  chain_options options_;
  chain_config config_;
  config_id sealed_;
  std::optional<std::size_t> position_; ///< Index among the members.
  bool complete_;                       ///< It has all entries up to last_, or their result.
  std::uint64_t last_;
  std::uint64_t committed_;
  std::uint64_t released_;
  std::optional<downstream> next_;
  time_point join_requested_at_{0};
  time_point heard_at_{0}; ///< When a joiner last heard from the tail.
  bool stalled_ = false;
  time_point lease_until_{0};
  /// last() when the configuration began; the previous head may have acknowledged all of these
  /// entries.
  std::uint64_t begun_with_ = 0;
  std::optional<std::uint64_t> copied_; ///< Index of the first copy for the joiner.
  bool waits_for_joiner_ = false;
};

} // namespace troupe
