// Declares the channels of a plan: which member has which ends, and which ports these ends are.
// docs/design/channels.md follows one parcel.
#pragma once

#include "actors/graph/nodes/joins.hpp"
#include "actors/protocol/channel/channel_hub.hpp"
#include "actors/training/own_actor.hpp"
#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class graph;
struct plan;

/// A node of actors. The indices of actors run over all of these nodes, in the order of the graph.
struct planned_actors {
  std::string name;
  own_actors what;
  std::uint32_t first = 0; ///< Index of its first actor.
  bool has_store = false;  ///< Its actors may pull.
};

struct planned_channel {
  /// One side: members first, first + 1, ... of a role.
  struct side {
    joined_port port;
    role as = role::actor;
    std::uint32_t first = 0, count = 0;
  };
  std::string name; ///< "players>learners"; the second one of the two nodes "players>learners.2".
  side from, to;
  join_shape shape = join_shape::spread;
  std::uint32_t window = channel_window_default;
  std::string head;
  std::size_t head_bytes = 0;
};

/// An end of a channel as one member has it, before its program's object is made.
struct planned_end {
  channel_end end; ///< Without the name of the port.
  joined_port port;
};

/// The ports of a member whose program's object is made.
struct member_ports {
  std::vector<channel_end> ends;  ///< With the names of the ports.
  std::vector<port_base*> joined; ///< Those of `ends`, in their order.
  std::vector<port_base*> pulls;
};

/// An actor of the program with its ports. Made, used and destroyed on one thread.
struct made_actor {
  std::unique_ptr<own_actor> actor;
  member_ports ports;
};

/// Takes the ports of a trainer, on its thread, before its first call.
using ports_taker = std::function<void(member_ports)>;

/// Returns the ends of a member, in the order of the graph. They are equal in all processes.
std::vector<planned_end> channels_of(const plan& what, const member_id& who);

/// Returns the node of an actor. Requires: the plan has an actor of this index.
const planned_actors& node_of_actor(const plan& what, std::uint32_t index);

/// Makes an actor on this thread, and puts it into its place. `notes`: takes its notes; null drops
/// them. It must outlive the actor, and so must the plan. Throws what the maker throws, and
/// std::invalid_argument with one line for wrong ports.
made_actor make_actor(const plan& what, std::uint32_t index, program_notes* notes = nullptr);

/// Finds the ports of the ends of a worker among those of its trainer. `node`: of the workers.
/// `made`: the ports that were made with the trainer. Errors: invalid_argument (a port that is
/// missing, is not joined, or is joined twice).
result<member_ports> ports_of(const std::vector<planned_end>& ends, const std::string& node,
                              trainer& one, const std::vector<port_base*>& made);

/// Checks the actors and the joins of a graph. Errors: invalid_argument.
result<void> check_channels(const graph& described);
/// Checks them against the store and the way to run. Errors: invalid_argument.
result<void> check_channels(const plan& what);
/// Takes the actors and channels of a graph into a plan.
void take_channels(const graph& described, plan& made);

} // namespace troupe
