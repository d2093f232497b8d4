#include "cli/chaos/checkers.hpp"

#include "cli/chaos/verdict_text.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <utility>

namespace troupe::chaos {

namespace {

/// After a fault a process may be given up for this time: a death takes 5 s to notice, and a
/// process that hangs is killed 5 s later.
constexpr double blame_seconds = 12;
/// A checkpoint that was written before the disk was full is committed within this time.
constexpr double write_seconds = 1;

check_result held(std::string checker, std::string why) {
  return {std::move(checker), check_outcome::holds, std::move(why)};
}
check_result broken(std::string checker, std::string why) {
  return {std::move(checker), check_outcome::violated, std::move(why)};
}
check_result not_judged(std::string checker, std::string why) {
  return {std::move(checker), check_outcome::not_judged, std::move(why)};
}
check_result decided(bool holds, std::string checker, std::string why) {
  return holds ? held(std::move(checker), std::move(why))
               : broken(std::move(checker), std::move(why));
}

/// Returns the member that an event gives up; empty for other events.
std::string given_up_in(const job_event& what) {
  switch (what.kind) {
  case event_kind::worker_lost:
  case event_kind::server_lost:
  case event_kind::actor_lost:
  case event_kind::worker_evicted:
  case event_kind::process_ended:
  case event_kind::process_hung:
  case event_kind::coordinator_hung: return std::string{what.text("member")};
  default: return {};
  }
}

bool strikes(const fault_record& fault, const run_facts& run) {
  return fault.what.kind != fault_kind::full_disk
         && (fault.what.kind != fault_kind::flip || run.replicas == 1);
}

bool is_to_blame(const run_facts& run, const std::string& who, double at) {
  return std::ranges::any_of(run.faults, [&](const fault_record& fault) {
    return strikes(fault, run) && to_string(fault.what.whom) == who && at >= fault.began
           && at <= fault.ended + blame_seconds;
  });
}

/// Returns true if most faults overlap. A promise for one fault at a time says little of such a
/// run.
bool overlaps_prevail(const run_facts& run) { return 2 * run.faults_apart() < run.faults.size(); }

std::string overlaps_of(const run_facts& run) {
  return fmt::format("{} of {} faults began before the cluster had recovered from another",
                     run.faults.size() - run.faults_apart(), run.faults.size());
}

bool takes_back(const job_event& what) { return what.number("updates") > 0; }

/// Returns the first fault after which the members were not all active in time, though no other
/// fault came.
const fault_record* slowly_healed(const run_facts& run) {
  for (std::size_t i = 0; i + 1 < run.faults.size(); ++i) {
    const auto quiet = run.faults[i + 1].began - run.faults[i].ended;
    if (std::min(run.healed_after(run.faults[i].ended).value_or(quiet), quiet) >= run.heal_limit)
      return &run.faults[i];
  }
  return nullptr;
}

} // namespace

check_result check_exactly_once(const run_facts& run) {
  const std::string name = "C1 exactly once";
  if (!run.counted)
    return broken(name, "the run did not come to its sums");
  return decided(run.counted->elements > 0 && run.counted->right == run.counted->elements, name,
                 fmt::format("{} of {} elements right", run.counted->right, run.counted->elements));
}

check_result check_conservation(const run_facts& run) {
  const std::string name = "C3 conservation";
  if (!run.counted)
    return broken(name, "the run did not come to its sums");
  const auto& found = *run.counted;
  const bool all = std::ranges::any_of(run.events, [&](const event& x) {
    return x.what.kind == event_kind::batches_applied && x.what.number("batches") == run.batches;
  });
  return decided(all && found.least == found.least_expected && found.most == found.most_expected,
                 name,
                 fmt::format("sums from {:.0f} to {:.0f}, expected {:.0f} to {:.0f}; {} batches{}",
                             found.least, found.most, found.least_expected, found.most_expected,
                             run.batches, all ? "" : " were not all reported as applied"));
}

check_result check_durability(const run_facts& run) {
  const std::string name = "durability";
  if (run.replicas < 2)
    return not_judged(name, "one replica goes back to its checkpoint, as it should");
  for (const auto& each : run.events)
    if (takes_back(each.what) && !run.is_overlapped(each.at))
      return broken(name, text_of(each.what));
  if (run.faults_apart() == run.faults.size()) // The report does not say when.
    return decided(run.rolled_back == 0, name,
                   fmt::format("{} updates rolled back", run.rolled_back));
  if (overlaps_prevail(run))
    return not_judged(name, overlaps_of(run));
  return held(name, "0 updates rolled back but where faults overlap; " + overlaps_of(run));
}

check_result check_checkpoints(const run_facts& run) {
  const std::string name = "C8 no bad checkpoint";
  if (run.flips.empty())
    return not_judged(name, "no bit was flipped");
  std::uint64_t refused = 0, gone = 0, restores = 0;
  for (const auto& flip : run.flips) {
    if (flip.refused && !*flip.refused)
      return broken(name, fmt::format("checkpoint {} counts as good with a flipped bit in {}",
                                      flip.checkpoint, flip.file));
    ++(flip.refused ? refused : gone);
  }
  for (const auto& each : run.events) {
    if (each.what.kind != event_kind::shard_restored)
      continue;
    ++restores;
    for (const auto& flip : run.flips)
      if (flip.checkpoint == each.what.number("checkpoint") && flip.at < each.at)
        return broken(name, text_of(each.what) + ", which has a flipped bit in " + flip.file);
  }
  const auto passed =
    run.count(event_kind::checkpoint_skipped) + run.count(event_kind::restore_failed);
  if (gone > 0 && run.count(event_kind::checkpoint_committed) <= run.checkpoints_kept)
    return broken(name, fmt::format("{} with a flipped bit are neither refused nor there, and none "
                                    "was to be removed",
                                    gone));
  const auto seen = fmt::format("{} damaged ones refused after the run, {} gone by then; {} "
                                "restores, none from a damaged one, {} passed over",
                                refused, gone, restores, passed);
  if (run.replicas == 1 && passed == 0)
    return broken(name, seen + ": no restore met a damaged one");
  return refused + passed > 0 ? held(name, seen) : not_judged(name, seen);
}

check_result check_full_disk(const run_facts& run) {
  const std::string name = "full disk";
  const auto counts = run.fault_counts()[static_cast<std::size_t>(fault_kind::full_disk)];
  if (counts == 0)
    return not_judged(name, "the disk was never full");
  double freed = 0;
  std::uint64_t failed = 0, meanwhile = 0;
  for (const auto& fault : run.faults)
    if (fault.what.kind == fault_kind::full_disk) {
      freed = fault.ended;
      meanwhile +=
        run.count(event_kind::checkpoint_committed, fault.began + write_seconds, fault.ended);
      failed += run.count(event_kind::checkpoint_failed, fault.began, fault.ended + write_seconds);
    }
  const auto later = run.count(event_kind::checkpoint_committed, freed);
  // On a full disk a checkpoint fails or waits for room. If neither happened, it was not full.
  return decided((failed > 0 || meanwhile == 0) && later > 0, name,
                 fmt::format("{} times; {} checkpoints failed, {} committed meanwhile, {} "
                             "committed after the last time",
                             counts, failed, meanwhile, later));
}

check_result check_evictions(const run_facts& run) {
  const std::string name = "C9 evictions";
  std::uint64_t given_up = 0;
  for (const auto& each : run.events) {
    const auto who = given_up_in(each.what);
    if (who.empty())
      continue;
    ++given_up;
    if (!is_to_blame(run, who, each.at))
      return broken(name, fmt::format("{} had no fault of its own at {:.1f} s: {}", who, each.at,
                                      text_of(each.what)));
  }
  return held(name, fmt::format("{} events give someone up, all of them after a fault", given_up));
}

check_result check_liveness(const run_facts& run) {
  const std::string name = "C10 liveness";
  const double took = run.ended_at - run.last_fault_ended();
  if (!run.exit_status)
    return broken(name, fmt::format("not done {:.0f} s after the last fault", took));
  if (*run.exit_status != 0)
    return broken(name, fmt::format("the job ended with status {}", *run.exit_status));
  if (took > run.finish_limit)
    return broken(name, fmt::format("done {:.0f} s after the last fault, the limit is {:.0f} s",
                                    took, run.finish_limit));
  if (const auto* slow = slowly_healed(run))
    return broken(name, fmt::format("not all members active {:.0f} s after '{}' at {:.1f} s",
                                    run.heal_limit, name_of(slow->what.kind), slow->began));
  if (run.not_recovered > 0)
    return broken(name, fmt::format("{} of {} lost processes did not recover", run.not_recovered,
                                    run.recoveries));
  if (took <= 0)
    return held(name, "the job was done before the last fault ended, and healed after the others");
  const auto healed = run.healed_after(run.last_fault_ended());
  if (!healed)
    return broken(name, fmt::format("never {} active members after the last fault", run.members()));
  if (*healed > run.heal_limit)
    return broken(name, fmt::format("all members active {:.1f} s after the last fault, the limit "
                                    "is {:.0f} s",
                                    *healed, run.heal_limit));
  return held(name, fmt::format("all {} members active {:.1f} s after the last fault, the job done "
                                "after {:.1f} s",
                                run.members(), *healed, took));
}

check_result check_resources(const run_facts& run) {
  const std::string name = "C12 resources";
  if (run.rss_mb.value == 0 || run.descriptors.value == 0)
    return broken(name, "no process was measured");
  return decided(
    run.rss_mb.value <= run.rss_limit_mb && run.descriptors.value <= run.descriptors_limit, name,
    fmt::format("{:.0f} MB ({}), limit {:.0f}; {:.0f} descriptors ({}), limit {:.0f}",
                run.rss_mb.value, run.rss_mb.whose, run.rss_limit_mb, run.descriptors.value,
                run.descriptors.whose, run.descriptors_limit));
}

check_result check_vacuity(const run_facts& run) {
  const std::string name = "C13 vacuity";
  const auto kinds = kinds_of(run.asked);
  if (kinds.empty())
    return not_judged(name, "no fault was asked for");
  const auto counts = run.fault_counts();
  for (const auto kind : kinds)
    if (const auto found = counts[static_cast<std::size_t>(kind)]; found < run.minimum)
      return broken(name, fmt::format("'{}' came {}, not {} or more", name_of(kind), times(found),
                                      times(run.minimum)));
  if (run.replicas > 1 && overlaps_prevail(run))
    return broken(name, "durability: " + overlaps_of(run));
  return held(name,
              fmt::format("each of {} kinds came {} or more", kinds.size(), times(run.minimum)));
}

std::vector<check_result> check_all(const run_facts& run) {
  return {check_exactly_once(run), check_conservation(run), check_durability(run),
          check_checkpoints(run),  check_full_disk(run),    check_evictions(run),
          check_liveness(run),     check_resources(run),    check_vacuity(run)};
}

} // namespace troupe::chaos
