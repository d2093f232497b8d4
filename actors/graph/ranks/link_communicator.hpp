// Adds up numbers over a communicator's ranks, by a schedule. Ranks are processes that
// are connected by links. A launcher runs them on one host, and takes links only where
// shared memory cannot be had.
//
// A chunk travels as a push, so the frames, the arena and the checks of the data path serve it
// unchanged. It is sent from the buffer itself, and added to the receiver's buffer from the memory
// where it arrived. The transport's thread adds each chunk and sends the chunks that follow. The
// caller waits meanwhile, or computes the rest of its numbers.
//
// Shapes:       equal counts on all ranks, and equal schedules without staging places.
// Determinism:  the schedules fix every bit, whenever parts become ready on any rank.
// Errors:       a rank whose link is lost ends the sums of all ranks; a rank that hangs ends them
//               at the deadline.
// Lifetime:     the destructor ends the links, so that the other ranks notice. Before that it waits
//               at most options.parting for ranks that still add up sums which this rank has
//               finished. A sum that was begun and not finished fails; its numbers are then no
//               longer in use.
#pragma once

#include "base/notice.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"
#include "base/shared_counter.hpp"
#include "kernels/collectives/communicator.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

struct link_communicator_options {
  /// The caller's wait. It sleeps at once: the transport's thread does the work and needs the core.
  kernels::wait_options wait{.spin = std::chrono::microseconds{0}};
  /// Time for all ranks to come together.
  std::chrono::milliseconds forming{30'000};
  /// Forming ends soon after this returns false; empty: always true.
  std::function<bool()> wanted;
  /// Gets notices: ranks that are missing for more than `waiting_told`, and problems with accepting
  /// their connections.
  notice_sink waits;
  std::chrono::milliseconds waiting_told{3'000};
  /// A sum fails if no chunk arrives for this time while the caller waits in finish().
  std::chrono::milliseconds deadline{30'000};
  /// Time that a communicator's end waits for ranks that are still adding up. A rank that hangs
  /// delays the end of the others by it.
  std::chrono::milliseconds parting{5'000};
  transport_options links;
};

/// Forms a communicator with the other ranks: rank r is at addresses[r]. `listener`: a socket that
/// listens at this rank's address; taken. `self`: the hello of links, with equal job and secret on
/// all ranks; `from.index` is the rank. Blocks for options.forming at most.
/// Ranks may begin, give up and begin again at any time; ranks that still form wait for them.
/// Errors: timed_out (names a rank that did not come or did not find the others; or not wanted),
/// io_failed, invalid_argument. Sums go by schedule_for_links(), and each of their errors names the
/// rank: peer_lost, timed_out, shape_mismatch (another count or schedule).
result<std::unique_ptr<kernels::communicator>>
form_link_communicator(const hello& self, const std::vector<endpoint>& addresses, int listener,
                       const link_communicator_options& options = {});

/// Returns a sum's schedule for ranks connected by links: a ring, which sends chunks while it adds
/// others. Below 64 KiB numbers go directly to the rank that adds them.
kernels::schedule schedule_for_links(std::uint32_t ranks, std::size_t bytes);
/// Returns a schedule by which all ranks get the numbers of `root`. The root waits for no other
/// rank, so it may be ahead of them by any number of such sums.
kernels::schedule broadcast_for_links(std::uint32_t ranks, std::uint32_t root, std::size_t bytes);

} // namespace troupe
