#include "actors/protocol/coordinator/ledger.hpp"

#include "actors/protocol/mutation.hpp"
#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace troupe {
namespace {

/// Clocks of one group in bsp: a death costs at most this many clocks of one slot.
constexpr std::uint32_t group_clocks_max = 16;
/// Longer leases are never made; a status that claims one is ignored.
constexpr std::uint32_t lease_count_max = 1u << 16;

/// Returns the position of `batch` in `what`, or what.count if it is not there.
std::uint64_t position_in(const lease& what, std::uint64_t batch) {
  if (batch < what.first.value || (batch - what.first.value) % what.stride != 0)
    return what.count;
  return std::min<std::uint64_t>((batch - what.first.value) / what.stride, what.count);
}

} // namespace

ledger::ledger(const job_spec& job, ledger_options options)
    : job_(job), options_(options), batches_(job.batches()), by_clocks_(goes_by_clocks(job)) {
  options_.lease_batches = std::clamp(options_.lease_batches, 1u, lease_count_max);
  options_.leases_ahead = std::max(options_.leases_ahead, 1u);
}

// -- giving out ---------------------------------------------------------------------------------

std::set<worker_id> ledger::hand_out(const std::vector<worker_id>& workers,
                                     std::uint64_t& next_lease_id,
                                     const std::map<worker_id, std::uint32_t>& lease_max) {
  std::set<worker_id> changed;
  if (workers.empty())
    return changed;
  for (const auto worker : workers) {
    if (const auto own = held_.find(worker); own != held_.end() && own->second.copy_of) {
      held_.erase(own); // It gets work of its own.
      changed.insert(worker);
    }
  }
  while (!queued_.empty()) {
    const auto to = least_loaded(workers, lease_max);
    const auto size_max = lease_max_of(to, lease_max);
    if (!by_clocks_ && load(to) >= size_max * options_.leases_ahead)
      break;
    auto what = take_queued(std::min(lease_size(workers.size()), size_max));
    what.id = next_lease_id++;
    give(to, what);
    changed.insert(to);
  }
  while (cursor_ < batches_) {
    const auto to = fewest_leases(workers);
    if (leases_of(to).size() >= options_.leases_ahead)
      break;
    if (by_clocks_) {
      give_out_group(workers, next_lease_id, changed);
      continue;
    }
    const auto count =
      std::min({lease_size(workers.size()), lease_max_of(to, lease_max), batches_ - cursor_});
    give(to, {next_lease_id++, {cursor_}, static_cast<std::uint32_t>(count), 1});
    cursor_ += count;
    changed.insert(to);
  }
  assert(knows_all());
  return changed;
}

void ledger::give_out_group(const std::vector<worker_id>& workers, std::uint64_t& next_lease_id,
                            std::set<worker_id>& changed) {
  const std::uint64_t slots = job_.workers;
  const auto epoch_end = (cursor_ / job_.batches_per_epoch() + 1) * job_.batches_per_epoch();
  const auto clocks = std::min(options_.lease_batches, group_clocks_max);
  const auto end = std::min(cursor_ + clocks * slots, epoch_end);
  assert(cursor_ % job_.batches_per_epoch() % slots == 0);
  // Each worker gets one slot before any gets two: each clock waits for a worker with two.
  std::vector<worker_id> without;
  for (auto first = cursor_; first < std::min(cursor_ + slots, end); ++first) {
    if (without.empty())
      without = workers;
    const auto to = least_loaded(without);
    std::erase(without, to);
    const auto count = (end - first + slots - 1) / slots;
    give(to, {next_lease_id++, {first}, static_cast<std::uint32_t>(count), job_.workers});
    changed.insert(to);
  }
  cursor_ = end;
}

lease ledger::take_queued(std::uint64_t count_max) {
  const auto first = *queued_.begin();
  const auto per_epoch = job_.batches_per_epoch();
  std::uint32_t count = 0;
  while (count < count_max && queued_.contains(first + count)
         && (first + count) / per_epoch == first / per_epoch)
    queued_.erase(first + count++);
  return {0, {first}, count, 1};
}

void ledger::give(worker_id worker, const lease& what) {
  auto& own = held_[worker];
  own.leases.push_back(what);
  own.done.emplace_back(what.count, false);
  for (std::uint32_t i = 0; i < what.count; ++i) {
    assert(!leased_.contains(what.at(i).value));
    leased_[what.at(i).value] = what.id;
  }
}

std::uint64_t ledger::lease_size(std::size_t workers) const {
  // Half of a fair share: a slow worker holds little when the work runs out.
  return std::clamp<std::uint64_t>(remaining() / (2 * workers), 1, options_.lease_batches);
}

std::uint64_t ledger::load(worker_id worker) const {
  const auto own = held_.find(worker);
  if (own == held_.end())
    return 0;
  std::uint64_t open = 0;
  for (const auto& done : own->second.done)
    open += static_cast<std::uint64_t>(std::count(done.begin(), done.end(), false));
  return open;
}

std::uint64_t ledger::lease_max_of(worker_id worker,
                                   const std::map<worker_id, std::uint32_t>& lease_max) const {
  const auto own = lease_max.find(worker);
  return own == lease_max.end() || by_clocks_ ? options_.lease_batches
                                              : std::clamp(own->second, 1u, options_.lease_batches);
}

worker_id ledger::least_loaded(const std::vector<worker_id>& workers,
                               const std::map<worker_id, std::uint32_t>& lease_max) const {
  return *std::min_element(workers.begin(), workers.end(), [&](worker_id a, worker_id b) {
    return std::tuple(load(a) * lease_max_of(b, lease_max), a)
           < std::tuple(load(b) * lease_max_of(a, lease_max), b);
  });
}

worker_id ledger::fewest_leases(const std::vector<worker_id>& workers) const {
  return *std::min_element(workers.begin(), workers.end(), [this](worker_id a, worker_id b) {
    return std::tuple(leases_of(a).size(), load(a), a)
           < std::tuple(leases_of(b).size(), load(b), b);
  });
}

// -- taking back and copies ----------------------------------------------------------------------

void ledger::holding::erase(std::size_t position) {
  leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(position));
  done.erase(done.begin() + static_cast<std::ptrdiff_t>(position));
}

/// Returns the position of the first open batch in the lease, or its count.
std::uint32_t ledger::holding::first_open(std::size_t position) const {
  const auto& flags = done[position];
  return static_cast<std::uint32_t>(std::find(flags.begin(), flags.end(), false) - flags.begin());
}

/// Returns the lease with the smallest open batch. Requires: there is one, as always between calls.
std::size_t ledger::holding::furthest_behind() const {
  std::size_t first = 0;
  for (std::size_t i = 1; i < leases.size(); ++i)
    if (leases[i].at(first_open(i)) < leases[first].at(first_open(first)))
      first = i;
  return first;
}

bool ledger::take_leases(worker_id worker) {
  // A peer may have applied open batches to its copy, and another peer does not know of them.
  if (!owns_work(worker) || job_.gossip)
    return false;
  auto& own = held_.at(worker);
  const auto kept = own.furthest_behind();
  bool changed = false;
  for (auto i = own.leases.size(); i-- > 0;)
    if (i != kept)
      changed = cut(own, i, 0) || changed;
  return (!by_clocks_ && cut(own, 0, own.first_open(0) + 1)) || changed;
}

std::optional<worker_id>
ledger::overloaded(const std::map<worker_id, std::uint32_t>& lease_max) const {
  std::optional<worker_id> most;
  for (const auto& [worker, own] : held_) {
    const bool can_give =
      by_clocks_ ? own.leases.size() > 1 : load(worker) > lease_max_of(worker, lease_max);
    if (!own.copy_of && can_give && (!most || least_loaded({worker, *most}, lease_max) == *most))
      most = worker;
  }
  return most;
}

/// Ends the lease after `count` batches; the others are queued. Returns whether it changed.
bool ledger::cut(holding& own, std::size_t position, std::uint32_t count) {
  auto& what = own.leases[position];
  if (count >= what.count)
    return false;
  give_back(what, count);
  what.count = count;
  own.done[position].resize(count);
  if (count == 0)
    own.erase(position);
  return true;
}

void ledger::give_back(const lease& what, std::uint32_t from) {
  for (auto i = from; i < what.count; ++i) {
    const auto open = leased_.find(what.at(i).value);
    if (open == leased_.end() || open->second != what.id)
      continue;
    if (!settled_.contains({open->first}))
      queued_.insert(open->first);
    leased_.erase(open);
  }
}

bool ledger::copy(worker_id from, worker_id to, std::uint64_t& next_lease_id,
                  std::uint32_t count_max) {
  if (!owns_work(from) || copied_by(to) == from)
    return false;
  const auto& source = held_.at(from);
  const auto position = source.furthest_behind();
  const auto first = source.first_open(position);
  const auto& whole = source.leases[position];
  const auto count = std::min(whole.count - first, count_max);
  held_[to] = {{{next_lease_id++, whole.at(first), count, whole.stride}},
               {std::vector<bool>(count, false)},
               from};
  return true;
}

std::optional<worker_id> ledger::copied_by(worker_id worker) const {
  const auto own = held_.find(worker);
  return own != held_.end() && has_open(own->second) ? own->second.copy_of : std::nullopt;
}

bool ledger::has_open(const holding& copy) const {
  for (std::size_t i = 0; i < copy.leases.size(); ++i)
    for (std::uint32_t j = 0; j < copy.leases[i].count; ++j) {
      const auto batch = copy.leases[i].at(j).value;
      if (!copy.done[i][j] && (leased_.contains(batch) || queued_.contains(batch)))
        return true;
    }
  return false;
}

/// Finishes a batch that a copy has done: the worker that holds it need not compute it.
void ledger::done_by_copy(std::uint64_t batch, worker_id by) {
  finish(batch, by);
  const auto open = leased_.extract(batch);
  if (!open)
    return;
  for (auto& [worker, own] : held_)
    for (std::size_t i = 0; i < own.leases.size(); ++i) {
      auto& what = own.leases[i];
      if (what.id != open.mapped())
        continue;
      own.done[i][position_in(what, batch)] = true;
      const auto first = own.first_open(i);
      if (first == 0)
        return; // Others before it are open.
      shortened_.insert(worker);
      if (first == what.count) {
        own.erase(i);
        if (own.leases.empty())
          held_.erase(worker);
        return;
      }
      what.first = what.at(first);
      what.count -= first;
      own.done[i].erase(own.done[i].begin(), own.done[i].begin() + first);
      return;
    }
}

// -- progress ------------------------------------------------------------------------------------

bool ledger::progress(worker_id worker, const std::vector<lease_progress>& leases,
                      bool rebuilding) {
  bool changed = false;
  for (const auto& reported : leases) {
    auto& own = held_[worker];
    // Found by its id: it may have become shorter since.
    auto at = std::ranges::find(own.leases, reported.lease.id, &lease::id);
    if (at == own.leases.end()) {
      if (!rebuilding || !believe(worker, reported))
        continue;
      at = own.leases.end() - 1;
      changed = true;
    }
    const auto position = static_cast<std::size_t>(at - own.leases.begin());
    if (record_done(worker, own, position, reported.done))
      changed = true;
  }
  if (const auto own = held_.find(worker); own != held_.end() && own->second.leases.empty())
    held_.erase(own);
  return changed;
}

/// Records done batches. Returns whether the lease is complete, and dropped.
bool ledger::record_done(worker_id by, holding& own, std::size_t position,
                         const std::vector<batch_id>& done) {
  const auto what = own.leases[position];
  auto& flags = own.done[position];
  for (const auto batch : done) {
    const auto i = position_in(what, batch.value);
    if (i >= what.count || flags[i])
      continue;
    flags[i] = true;
    if (own.copy_of) {
      done_by_copy(batch.value, by);
      continue;
    }
    const auto open = leased_.find(batch.value);
    if (open == leased_.end() || open->second != what.id)
      continue;
    leased_.erase(open);
    finish(batch.value, by);
  }
  if (own.first_open(position) < what.count)
    return false;
  own.erase(position);
  return true;
}

/// Adopts a lease of an earlier term. Its done batches count even if the lease is refused.
bool ledger::believe(worker_id worker, const lease_progress& reported) {
  const auto& what = reported.lease;
  if (!valid(what))
    return false;
  raise_cursor(what.at(what.count - 1).value + 1);
  std::vector<bool> done(what.count, false);
  for (const auto batch : reported.done) {
    if (const auto i = position_in(what, batch.value); i < what.count) {
      done[i] = true;
      if (!leased_.contains(batch.value))
        finish(batch.value, worker);
    }
  }
  for (const auto& [batch, id] : leased_) {
    if (id == what.id)
      return false;
  }
  for (std::uint32_t i = 0; i < what.count; ++i) {
    if (!done[i] && leased_.contains(what.at(i).value))
      return false;
  }
  for (std::uint32_t i = 0; i < what.count; ++i) {
    if (done[i])
      continue;
    const auto batch = what.at(i).value;
    assert(!leased_.contains(batch));
    queued_.erase(batch);
    finished_.erase(batch);
    leased_[batch] = what.id;
  }
  auto& own = held_[worker];
  own.leases.push_back(what);
  own.done.push_back(std::move(done));
  return true;
}

void ledger::lost(worker_id worker) {
  for (auto& [batch, finished] : finished_)
    if (finished.by == worker)
      finished = {};
  const auto own = held_.find(worker);
  if (own == held_.end())
    return;
  for (const auto& what : own->second.leases)
    if (!mutated(mutation::lost_work_forgotten))
      give_back(what, 0);
  held_.erase(own);
}

// -- comparing with applied batches --------------------------------------------------------------

void ledger::settle(const batch_set& applied) {
  const auto before = std::exchange(settled_, applied);
  for (auto batch = applied.floor().value; batch < before.end().value; ++batch) {
    if (before.contains({batch}) && !applied.contains({batch}) && !leased_.contains(batch))
      finished_.try_emplace(batch);
  }
  raise_cursor(applied.end().value);
  std::erase_if(queued_, [&](std::uint64_t batch) { return applied.contains({batch}); });
  std::erase_if(finished_, [&](const auto& entry) { return applied.contains({entry.first}); });
}

std::uint64_t ledger::audit(const batch_set& applied, audit_trust trust) {
  settle(applied);
  std::uint64_t queued = 0;
  for (auto entry = finished_.begin(); entry != finished_.end();) {
    const bool is_new = !std::exchange(entry->second.is_met, true);
    if ((is_new && trust != audit_trust::none)
        || (entry->second.by && trust == audit_trust::living)) {
      ++entry;
      continue;
    }
    if (!mutated(mutation::audit_queues_nothing))
      queued_.insert(entry->first);
    entry = finished_.erase(entry);
    ++queued;
  }
  assert(knows_all());
  return queued;
}

void ledger::roll_back(const batch_set& applied) {
  held_.clear();
  leased_.clear();
  queued_.clear();
  finished_.clear();
  settled_ = {};
  cursor_ = 0;
  settle(applied);
}

void ledger::finish(std::uint64_t batch, worker_id by) {
  queued_.erase(batch);
  if (!settled_.contains({batch}))
    finished_[batch].by = by;
}

/// Raises the cursor, in bsp to the end of a clock, so that the next group begins with one.
void ledger::raise_cursor(std::uint64_t end) {
  end = std::min(end, batches_);
  if (end <= cursor_)
    return;
  if (by_clocks_)
    end = bsp_end(job_, bsp_clock(job_, {end - 1})).value;
  for (; cursor_ < end; ++cursor_) {
    if (settled_.contains({cursor_}) || leased_.contains(cursor_))
      continue;
    if (options_.unknown_is_finished)
      finished_.try_emplace(cursor_);
    else
      queued_.insert(cursor_);
  }
}

// -- queries -------------------------------------------------------------------------------------

bool ledger::valid(const lease& what) const {
  return what.count > 0 && what.count <= lease_count_max && what.stride > 0
         && what.first.value < batches_
         && std::uint64_t{what.count - 1} * what.stride < batches_ - what.first.value;
}

bool ledger::knows_all() const {
  return settled_.size() + queued_.size() + leased_.size() + finished_.size() >= cursor_;
}

const std::vector<lease>& ledger::leases_of(worker_id worker) const {
  static const std::vector<lease> none;
  const auto own = held_.find(worker);
  return own == held_.end() ? none : own->second.leases;
}

bool ledger::holds_work(worker_id worker) const { return !leases_of(worker).empty(); }

bool ledger::owns_work(worker_id worker) const {
  const auto own = held_.find(worker);
  return own != held_.end() && !own->second.copy_of;
}

batch_id ledger::cursor() const { return {cursor_}; }

std::uint64_t ledger::remaining() const { return batches_ - cursor_ + queued_.size(); }

std::uint64_t ledger::settled() const { return std::min(settled_.size(), batches_); }

batch_set ledger::acknowledged() const {
  auto all = settled_;
  for (const auto& [batch, how] : finished_)
    all.insert({batch});
  return all;
}

bool ledger::complete() const { return settled_.floor().value >= batches_; }

} // namespace troupe
