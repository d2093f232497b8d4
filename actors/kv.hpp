// Declares the interface of the data path and the two of the control path, as CAF handles. Every
// actor that holds or forwards parameters is a kv; a graph is kvs handed to each other.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"

#include "caf/allowed_unsafe_message_type.hpp"
#include "caf/atom.hpp"
#include "caf/error.hpp"
#include "caf/type_id.hpp"
#include "caf/typed_actor.hpp"

#include <chrono>
#include <functional>
#include <vector>

// These travel inside one process only; between processes links send them as wire messages.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::reply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::request_list)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::answer_list)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::replica_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::status_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::desired_state)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::view)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<troupe::member_address>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::member_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::failure)

CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
  CAF_ADD_ATOM(troupe, troupe, tick_atom, "tick")
  CAF_ADD_ATOM(troupe, troupe, view_atom, "view")
  CAF_ADD_ATOM(troupe, troupe, step_atom, "step")
  CAF_ADD_ATOM(troupe, troupe, opened_atom, "opened")
  CAF_ADD_ATOM(troupe, troupe, lost_atom, "lost")
  CAF_ADD_ATOM(troupe, troupe, write_atom, "write")
  CAF_ADD_ATOM(troupe, troupe, read_atom, "read")
  CAF_ADD_ATOM(troupe, troupe, find_atom, "find")
  CAF_ADD_ATOM(troupe, troupe, commit_atom, "commit")
  CAF_ADD_ATOM(troupe, troupe, scrub_atom, "scrub")
  CAF_ADD_ATOM(troupe, troupe, evaluate_atom, "evaluate")
  CAF_ADD_ATOM(troupe, troupe, deliver_atom, "deliver")
  CAF_ADD_ATOM(troupe, troupe, end_atom, "end")
CAF_END_TYPE_ID_BLOCK(troupe)

namespace troupe {

/// ~~~
/// interface kv {
///   // push: accumulates one batch's gradients under the ranges of its pieces. pull: reads current
///   // values, within the consistency of the named tables; after the push, if there are both.
///   // reply:      the push reply after the update was applied (or had been before); values, whose
///   //             pieces cover the ranges.
///   // errors:     non_finite, fenced, rolled_back, shape_mismatch, malformed, overloaded,
///   //             sum_not_applicable (a sum of batches; each may come alone), device_failed;
///   //             not_ready, peer_lost, timed_out (retry). On an error of the pull, or if the
///   //             reply was lost, the push may have been applied.
///   //             not_yet: a pull alone has waited 500 ms in vain; ask again. If there was a
///   //             push too, the reply then has its push reply and no values.
///   // idempotent: yes; pushes by the batch number, for each table and partition.
///   (request) -> reply
/// }
/// ~~~
///
/// Ordering: messages of one sender are handled in send order.
using kv = caf::typed_actor<caf::replies_to<request>::with<reply>>;

/// Receives replies to numbered requests, all that are ready at a time.
using answer_sink = caf::typed_actor<caf::reacts_to<answer_list>>;

/// Takes many small requests in one message, in order. Each is answered by the client's number for
/// it, as soon as it is done, regardless of the others. A kv_service that has ended answers no
/// request: monitor it.
using kv_service = kv::extend<caf::reacts_to<request_list, answer_sink>>;

/// Receives new views of the cluster, with the addresses of the servers that they name.
using view_sink = caf::typed_actor<caf::reacts_to<view_atom, view, std::vector<member_address>>>;

/// Takes new views as well. Requests wait while a server is away, and go on when a view says that
/// it is back.
///
/// Lifetime: until its last handle is dropped or it is told to exit; open requests then end with
///           the sender's timeout.
/// Capacity: holds every open request; its clients limit their number (a worker: a few pushes).
using router_handle = kv::extend_with<view_sink>;

/// Receives the members that listen for the sender.
using listener_sink = caf::typed_actor<caf::reacts_to<std::vector<member_address>>>;

/// The values of a store, as one process asks for them.
struct store_client {
  kv values;
  view_sink views{}; ///< Takes each new view before a request that needs it. Null: none is needed.
  listener_sink lanes{}; ///< Takes the members that listen; null: the values come without lanes.
};

/// Receives the messages of the other replicas of its shards.
using replica_sink = caf::typed_actor<caf::reacts_to<replica_message>>;

/// Is a kv, a replica_sink and a member.
using server_handle = kv_service::extend_with<replica_sink>::extend<caf::reacts_to<desired_state>>;

/// Receives its desired state. Lifetime: until desired_state::stop.
using member_handle = caf::typed_actor<caf::reacts_to<desired_state>>;

/// Receives what a member is, and the handle that its desired states go to. One-way, repeatable.
using coordinator_handle = caf::typed_actor<caf::reacts_to<status_message, member_handle>>;

/// Receives broken connections as well (a hint, not a proof).
/// roles/coordinator/coordinator_actor.hpp makes one; links bring the statuses of other processes
/// to it.
using coordinator_service = coordinator_handle::extend<caf::reacts_to<lost_atom, member_id>>;

/// Makes the coordinator's handle for a member: the actor itself, or an uplink to it.
using coordinator_connector = std::function<coordinator_handle(member_handle)>;

/// Time between two statuses of a member without events.
constexpr std::chrono::milliseconds report_interval{100};

/// Longest wait for one reply of a server before the request is sent again, beside the time that
/// its bytes take (open_requests.hpp). Pulls that wait for other workers are answered `not_yet` far
/// earlier, so this passes only when a peer hangs.
constexpr std::chrono::seconds request_timeout{5};

/// Convert a failure to CAF's form, and back. CAF's own errors become timed_out or peer_lost.
caf::error to_caf(const failure& why);
failure from_caf(const caf::error& why);

/// Returns the error with which a member ends that this desired state stops: `fenced` and the
/// reason if it names a failure, else none.
caf::error reason_to_end(const desired_state& what);

} // namespace troupe
