// What a job keeps on disks, as plain values: what is in a checkpoint, what a coordinator must not
// forget. storage/ writes and reads them.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"
#include "serialization/replication.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace troupe::storage {

/// A cut that stays with the server: what it begins with when it starts again, see
/// storage/local_state.hpp.
struct base_id {
  std::uint64_t sequence = 0; ///< Grows with each; its log has the same number.
  generation_id history;      ///< Of the job.
  generation_id generation;   ///< Of the chain.
  bool recovered = false;     ///< That began with all that the chain had acknowledged before.

  bool operator==(const base_id&) const = default;
};

/// What a committed checkpoint consists of.
struct manifest {
  std::uint64_t checkpoint = 0;
  job_spec job;
  generation_id generation;
  std::uint64_t clock = 0; ///< bsp: clocks applied at the cut; 0 otherwise.
  batch_id cursor;         ///< No batch at or above it had been given out.
  std::vector<checkpoint_part> parts;
};

/// What a search for the newest usable checkpoint found.
struct found {
  std::optional<manifest> newest; ///< None: no usable checkpoint.
  std::vector<failure> refused;   ///< One for each newer one that was passed over, with its name.
};

/// The few numbers that a coordinator must not forget. Every call is synced to disk.
struct coordinator_state {
  std::uint64_t term = 0; ///< Starts of a coordinator so far.
  generation_id generation;
  std::uint64_t job = 0; ///< fingerprint; 0: none stored.
  std::vector<chain_id> chain_of;
  std::vector<chain_metadata> chains;
  std::set<server_id> servers;  ///< Those that are to be there; none: as the job began.
  std::set<server_id> draining; ///< Those that are to hold nothing any more.
  std::uint64_t committed = 0;  ///< Newest checkpoint of the job that was committed; 0: none.
  bool rolling_back = false;    ///< `generation` was not begun by all chains yet.
};

} // namespace troupe::storage
