// One replica of a chain: which entries of the log it has, passes on, and counts as final. Chain
// replication (van Renesse, Schneider 2004) with epochs, seals and leases in place of a perfect
// failure detector. A plain state machine; entries stay with the caller, under their index.
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
  /// When the first entry that is not final is sent again, at the earliest; longer than a round
  /// trip over the chain. Each time after twice as long, and not before twice the time that entries
  /// took last: one that is slow or stopped has to read them all.
  std::chrono::milliseconds resend_time{100};
  /// Entries on their way to the next replica at a time.
  std::uint64_t window = 1024;
  /// Whom entries are sent to, or a joiner asks for them, and of whom nothing came for so long, is
  /// told of. Longer than all but the largest entries take.
  std::chrono::milliseconds stalled_time{2000};
  /// A joiner that lacks at most so many entries is waited for.
  std::uint64_t sync_lag = 1024;
  /// Reads are refused when the coordinator has echoed no report sent within this time. The
  /// coordinator removes a silent server later than this, by the clocks' largest difference. 0:
  /// reads need no lease, as where each chain has one server: nobody takes its place in silence.
  std::chrono::milliseconds lease_time{800};
};

// -- effects --

/// Send entry `what.index` along.
struct append_effect {
  member_id to;
  append_message what;
};
struct chain_message_effect {
  member_id to;
  std::variant<committed_message, joined_message> what;
};
/// Entries up to `index` are final: apply them in order, answer who pushed them.
struct commit_effect {
  std::uint64_t index = 0;
};
/// Entries beyond `last` will not become final through this replica: forget them, and refer who
/// pushed them to the head.
struct truncate_effect {
  std::uint64_t last = 0;
};
/// Entries up to `index` are not sent again: their memory can go once they are applied.
struct release_effect {
  std::uint64_t index = 0;
};
/// Ask the tail for a copy of its values; then call install().
struct request_copy_effect {
  member_id from;
  config_id config;
};

using chain_effect = std::variant<append_effect, chain_message_effect, commit_effect,
                                  truncate_effect, release_effect, request_copy_effect>;
using chain_effects = std::vector<chain_effect>;

/// Only what is final is applied to values. So a replica that falls out of its chain holds a past
/// state of it, never a wrong one, and comes back with what it lacks. That is so within one
/// generation; where another one begins, the caller makes another replica of what that begins with.
///
///     spare --active: joiner--> copying --install()--> joiner --active: member--> member
///       ^-----------------------active: neither--------------------------------------|
///
/// Invariants:
/// (1) the log of a member holds that of its successor.
/// (2) committed() never shrinks, and is at most last().
/// (3) what is final is in the log of every member of this epoch's configuration and of each later
///     one.
/// (4) nothing of an epoch is appended, made final by the tail or read once a later one was
///     proposed.
class chain {
public:
  /// `committed`: index of the state that the caller holds; `complete`: whether members of this
  /// generation start from it (fresh or restored partitions), else the replica has to join.
  chain(member_id self, generation_id generation, std::uint64_t committed, bool complete,
        chain_options options = {});

  // -- the coordinator's word --
  /// A configuration that is to follow: seals what was before.
  void propose(config_id config);
  /// One of another generation, an older one, or the present one changes nothing.
  void activate(const chain_config& config, time_point now, chain_effects& effects);
  /// The coordinator has heard the report that this process sent at `stamp`, by this clock.
  void renew(time_point stamp);

  // -- entries --
  bool is_head() const { return position_ == 0U; }
  bool leads() const { return is_head() && !sealed(); }
  /// Takes the next entry, last() + 1. Requires: leads().
  void append(time_point now, chain_effects& effects);
  /// Whether the entry is the next one: the caller keeps it, under its index, before it carries out
  /// the effects.
  bool receive(const member_id& from, const append_message& what, time_point now,
               chain_effects& effects);
  void receive(const member_id& from, const committed_message& what, time_point now,
               chain_effects& effects);
  void receive(const member_id& from, const joined_message& what, time_point now,
               chain_effects& effects);
  /// Sends again what was lost, and notices where that is of no use.
  void tick(time_point now, chain_effects& effects);

  // -- copies --
  /// The index of the state to be sent to `from`: committed(). None: not to this one, not now, or
  /// it has one.
  std::optional<std::uint64_t> copy_for(const member_id& from, config_id config);
  /// From now on nothing becomes final that the joiner lacks, where there is one that has a copy.
  /// So what is kept for it has a bound.
  void wait_for_joiner() { waits_for_joiner_ = waits_for_joiner_ || copied_; }
  /// A part of the copy came, or is being looked after.
  void copy_advanced(time_point now) { heard_at_ = now; }
  /// A copy of the state at `index` came. Whether the caller is to put it in the place of its own
  /// before it carries out the effects.
  bool install(config_id config, std::uint64_t index, time_point now, chain_effects& effects);

  // -- reads --
  /// Of what is applied: whatever was acknowledged to anyone, ever, where this is the tail.
  bool may_read(time_point now) const;
  bool is_tail() const { return position_ && *position_ + 1 == config_.members.size(); }

  std::uint64_t last() const { return last_; }
  std::uint64_t committed() const { return committed_; }
  const chain_config& config() const { return config_; }
  generation_id generation() const { return generation_; }
  chain_status status() const;

private:
  /// Who gets entries from this one: the next member, or of the tail the joiner.
  struct downstream {
    member_id to;
    std::uint64_t has = 0;  ///< It has said so, itself or through the tail.
    std::uint64_t sent = 0; ///< Since the last time that something seemed lost.
    time_point since{0};    ///< When `has` grew, it began to lack something, or was sent it again.
    time_point grew_at{0};  ///< The same, but for what was sent again.
    std::uint64_t window = 0; ///< Entries on their way at a time: one while some seem lost.
    time_point patience{0};   ///< After which the first one is sent again.
    time_point heard_at{0};   ///< It said what is final: it may wait for others itself.
  };

  bool sealed() const { return sealed_ > config_.config; }
  bool is_current(config_id config) const { return config == config_.config && !sealed(); }
  bool is_joiner() const { return config_.joiner == self_; }
  bool is_member(const member_id& who) const;
  /// Who sends entries to this one.
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
  std::optional<std::size_t> position_; ///< Among the members.
  bool complete_;                       ///< It has all entries up to last_, or what they made.
  std::uint64_t last_;
  std::uint64_t committed_;
  std::uint64_t released_;
  std::optional<downstream> next_;
  time_point join_requested_at_{0};
  time_point heard_at_{0}; ///< When a joiner heard of the tail.
  bool stalled_ = false;
  time_point lease_until_{0};
  /// last() when the configuration began. Who led before may have acknowledged all of that.
  std::uint64_t begun_with_ = 0;
  std::optional<std::uint64_t> copied_; ///< The first copy for the joiner had this index.
  bool waits_for_joiner_ = false;
};

} // namespace troupe
