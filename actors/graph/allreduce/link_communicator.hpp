// A team over links: ranks in processes of one or many hosts, which add up their numbers by a
// schedule. Each rank calls sum() with a buffer of its own, as of kernels::team_member.
//
// A chunk travels as a push: the frames, the arena and the checks of the data path serve it as they
// are. It leaves from the buffer itself, and is added to the next one from where it arrived.
// What arrives is added on the transport's thread, which also sends what follows from it; the
// caller waits, or computes the rest of its numbers: a sum may have several parts, and each flows
// once the caller says that its own numbers are there.
//
//   begin(parts) ... ready(2) ... ready(1) ... finish()     the first part is the most urgent
//
// Shapes:       equal counts on all ranks, and equal schedules without staging places.
// Determinism:  bitwise the schedules', whenever parts become ready on whatever rank.
// Errors:       a team that has failed stays failed; numbers are undefined then, and no longer in
//               use once finish() says so. A rank whose link is lost ends the sums of all; one that
//               does nothing does so at the deadline.
// Lifetime:     the destructor ends the links, so that the other ranks notice; before it lets them
//               do the sums that this rank has done, for options.parting at most. One that was
//               begun and not finished fails; its numbers are no longer in use then.
#pragma once

#include "actors/graph/allreduce/bucket_flow.hpp"
#include "actors/notice_sink.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"
#include "base/shared_counter.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

struct link_communicator_options {
  /// Of the caller. Sleeps at once: the transport's thread does the work, and wants the core.
  kernels::wait_options wait{.spin = std::chrono::microseconds{0}};
  /// Time for all ranks to come together.
  std::chrono::milliseconds forming{30'000};
  /// Forming ends soon after this says no; empty: it never does.
  std::function<bool()> wanted;
  /// Gets what it waits for: a rank, for more than `waiting_told`; or what others are let in with.
  notice_sink waits;
  std::chrono::milliseconds waiting_told{3'000};
  /// Without anything that arrives for so long, a sum that all wait for fails.
  std::chrono::milliseconds deadline{30'000};
  /// Time that a team's end waits for ranks that are still adding up. Larger: a rank that hangs
  /// holds up the end of the others for so long.
  std::chrono::milliseconds parting{5'000};
  transport_options links;
};

/// Thread safety: of one thread.
class link_communicator {
public:
  /// Comes together with the other ranks: rank r is at addresses[r]. `listener`: a socket that
  /// listens at this rank's address; taken. `self`: what links are opened with; equal jobs and
  /// secrets on all ranks, `from.index` is the rank. Blocks for options.forming at most.
  /// Ranks may begin, give up and begin again at any time: who still forms waits for them.
  /// Errors: timed_out (names a rank that did not come or did not find the others; or not wanted),
  /// io_failed, invalid_argument.
  static result<std::unique_ptr<link_communicator>>
  form(const hello& self, const std::vector<endpoint>& addresses, int listener,
       const link_communicator_options& options = {});
  ~link_communicator();

  std::uint32_t rank() const;
  std::uint32_t ranks() const;

  /// Errors: peer_lost, timed_out, shape_mismatch (another count or schedule; each names the rank).
  [[nodiscard]] result<void> sum(const flow_plan& plan, std::span<float> numbers);

  /// Begins a sum of several parts. Borrowed, until finish() returns: the plans and the numbers.
  void begin(std::span<const sum_part> parts);
  /// The caller's numbers of that part are there, and belong to the team from now on. Never waits
  /// for other ranks, and adds up nothing on the caller's thread.
  void ready(std::uint32_t part);
  /// All other parts are ready too; returns when all of them are added up. Errors: as sum().
  [[nodiscard]] result<void> finish();

private:
  class state;
  explicit link_communicator(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

/// For ranks that are connected by links: a ring, in chunks that are sent while others are added;
/// few numbers go directly to who adds them.
kernels::schedule schedule_for_links(std::uint32_t ranks, std::size_t bytes);
/// The same for what all get from one. Its root needs nothing of the others, so it may be ahead of
/// them by any number of sums of this kind.
kernels::schedule broadcast_for_links(std::uint32_t ranks, std::uint32_t root, std::size_t bytes);

} // namespace troupe
