// Describes a job that does not end: what each process has, and what it waits for.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

std::string text(std::uint64_t x) { return std::to_string(x); }

std::string text(const chain_config& config) {
  std::string all = " configuration " + text(config.config.value) + " generation "
                    + text(config.generation.value) + ":";
  for (const auto& who : config.members)
    all += " " + text(who.index) + "." + text(who.incarnation.value);
  if (config.joiner)
    all += " +" + text(config.joiner->index) + "." + text(config.joiner->incarnation.value);
  return all;
}

std::string text(const chain_status& status) {
  return " generation " + text(status.generation.value) + " configuration "
         + text(status.config.value) + " sealed " + text(status.sealed.value)
         + (status.complete ? " complete" : "") + (status.joiner_synced ? " joiner synced" : "");
}

std::string text(const request& what) {
  std::string all;
  if (what.push)
    for (const auto& step : what.push->steps())
      all += " push of batch " + text(step.batch.value) + " at clock " + text(step.clock);
  if (what.pull)
    all += " pull at clock " + text(what.pull->step.clock);
  return all;
}

std::string text(const lease_progress& progress) {
  std::string all = "lease " + text(progress.lease.id) + " without";
  for (std::uint32_t i = 0; i < progress.lease.count; ++i)
    if (std::ranges::count(progress.done, progress.lease.at(i)) == 0)
      all += " " + text(progress.lease.at(i).value);
  return all;
}

} // namespace

std::string job_world::describe() const {
  std::string all = "phase "
                    + text(static_cast<std::uint64_t>(coordinator_ ? coordinator_->decider->phase()
                                                                   : launcher_->phase()))
                    + ", " + text(job().batches()) + " batches";
  for (std::size_t i = 0; i < persisted_.chains.size(); ++i) {
    const auto& record = persisted_.chains[i];
    all += "\n  shard " + text(i) + text(record.active)
           + (record.proposed ? ", then" + text(*record.proposed) : "");
  }
  for (const auto& [index, each] : servers_)
    for (const auto& [shard, at] : each->chains)
      all += describe(*each, at);
  for (const auto& [index, each] : workers_)
    all += describe(*each);
  for (const auto& [index, each] : worker_processes_) {
    all += "\n  process " + text(index) + " of workers: sent " + text(each->sent.size());
    for (const auto& line : each->values_of.waits())
      all += "\n    " + line;
  }
  for (const auto& [index, part] : parts_) {
    all += "\n  part " + text(part->table.value) + " of " + full_name(part->of) + ": phase "
           + text(static_cast<std::uint64_t>(part->does)) + " of batch "
           + text(part->step.batch.value) + " at clock " + text(part->step.clock);
    for (const auto& line : part->values_of.waits())
      all += "\n    " + line;
  }
  return all;
}

std::string job_world::describe(const server& by, const hosted& at) const {
  std::string all = "\n  " + full_name(by.id) + " shard " + text(at.host.shard().value)
                    + text(at.host.status()) + " applied " + text(at.values.applied.floor().value)
                    + " of " + text(at.values.applied.size());
  const auto* const state = at.host.state();
  if (state == nullptr)
    return all + ", no state";
  all += ", " + text(state->pending()) + " entries pending";
  for (const auto& [who, incarnation, clock, known] : state->clocks())
    all += "\n    worker " + text(who.value) + "." + text(incarnation.value)
           + (known ? " at clock " + text(clock) : " not heard of yet");
  std::map<request_token, std::string> reasons;
  for (const auto& [token, reason] : state->waits())
    reasons[token] = reason;
  for (const auto& [token, open] : at.requests) {
    const auto found = reasons.find(token);
    all += "\n    request " + text(token.value) + " of process " + full_name(open.from) + ":"
           + text(*open.asked.what) + ", "
           + (found == reasons.end() ? "not at the shard" : found->second);
  }
  return all;
}

std::string job_world::describe(const worker& one) const {
  std::string all = "\n  " + full_name(one.id) + " clock " + text(one.steps.clock())
                    + (one.admitted ? " admitted" : "") + (has_open_work(one) ? " at work" : "")
                    + (one.computes ? " computes" : "");
  for (const auto& progress : one.steps.progress())
    all += "\n    " + text(progress);
  for (const auto& [token, open] : one.requests)
    all += "\n    request " + text(token.value) + ":"
           + (open.done ? " push of batch " + text(open.done->batch.value) : "")
           + (open.next ? " pull for batch " + text(open.next->batch.value) : "");
  return all;
}

} // namespace troupe::sim
