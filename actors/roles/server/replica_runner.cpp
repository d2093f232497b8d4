// Steps and requests; replica_runner_disk.cpp has what it holds, replica_runner_copies.cpp copies.
#include "actors/roles/server/replica_runner.hpp"

#include "actors/tables/gradient_sum.hpp"
#include "serialization/payload.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// Time after which missing parts of a copy are requested again. A part may be larger by one block.
const std::chrono::nanoseconds copy_patience =
  std::chrono::seconds{1} + time_for_payload(2 * copy_parts_ahead * copy_part_bytes);

/// Returns the time that a push of all dense tables takes at 8 MB/s.
std::chrono::milliseconds time_for_entry(const job_spec& job) {
  std::uint64_t floats = 0;
  for (const auto& table : job.tables)
    floats += table.is_sparse() ? 0 : table.size();
  return std::chrono::duration_cast<std::chrono::milliseconds>(
    time_for_payload(floats * sizeof(float) / 8));
}

replica_host_options host_options_of(const server_context& context) {
  const auto& options = context.options;
  replica_host_options how;
  how.self = options.self;
  how.job = options.job;
  how.apply_batch = options.apply_batch;
  how.has_checkpoints = static_cast<bool>(context.storage);
  how.has_disk = !options.directory.empty();
  how.copy_patience = copy_patience;
  how.replica_options_of = [&options, pool = context.pool](const job_spec& job) {
    replica_options of_job;
    of_job.shard = options.shard;
    of_job.chain = options.chain;
    of_job.chain.stalled_time += time_for_entry(job);
    of_job.add_up = [job, pool](const std::vector<table_id>& tables, auto pushes) {
      return add_up(job, tables, pushes, *pool);
    };
    return of_job;
  };
  return how;
}

} // namespace

replica_runner::replica_runner(server_context& context, shard_id shard)
    : context_(&context), host_(shard, host_options_of(context)) {}

void replica_runner::reconcile(const chain_metadata& record,
                               const std::shared_ptr<const desired_server>& desired_state) {
  decide([&](host_effects& effects) { host_.reconcile(record, desired_state, now(), effects); });
}

void replica_runner::tick() {
  decide([&](host_effects& effects) { host_.tick(now(), effects); });
  flush_record();
}

// -- requests --

void replica_runner::ask(responder by, request what) {
  if (auto valid = check(what); !valid)
    return context_->answers.add(by, valid.error());
  const request_token token{next_token_++};
  open_request open{std::move(by)};
  if (what.push) {
    open.pushed = what.push->step;
    open.base_version = what.push->base_version;
  }
  requests_.add(token.value, std::move(open));
  decide([&](host_effects& effects) { host_.ask(token, std::move(what), now(), effects); });
}

result<void> replica_runner::check(const request& what) {
  auto valid = host_.ready();
  if (valid && what.push)
    valid = check(*what.push);
  if (valid && what.pull)
    valid = values_->check(*what.pull);
  return valid;
}

result<void> replica_runner::check(const push_request& push) {
  bytes_received_ += payload_bytes(push);
  auto valid = values_->check(push);
  if (valid && host_.is_bsp())
    valid = values_->check_finite(push);
  if (!valid && reaction_to(valid.error().code) != reaction::retry)
    host_.count_refused();
  return valid;
}

void replica_runner::answer(request_token token, reply what) {
  what.generation = host_.generation();
  auto ended = requests_.extract(token.value);
  context_->answers.add(ended->by, std::move(what));
}

void replica_runner::run(acknowledge_effect& effect, host_effects&) {
  if (!recorder_ || !effect.push_reply.duplicate || host_.is_bsp())
    return;
  const auto& open = requests_.at(effect.push.value);
  recorder_->repeated(now(), open.pushed, open.base_version);
}

void replica_runner::run(reply_effect& effect, host_effects&) {
  if (!effect.read)
    return answer(effect.request, {effect.pushed, std::nullopt});
  const auto& [what, version, previous] = *effect.read;
  auto read = values_->answer(what, previous);
  if (!read) {
    if (auto ended = requests_.extract(effect.request.value))
      context_->answers.add(ended->by, read.error());
    return;
  }
  auto found = *std::move(read);
  found.version = version;
  if (recorder_ && !host_.is_bsp() && !what.latest)
    recorder_->answered(what.step, version);
  bytes_sent_ += payload_bytes(found);
  answer(effect.request, {effect.pushed, std::move(found)});
}

void replica_runner::run(refuse_effect& effect, host_effects&) {
  if (auto ended = requests_.extract(effect.request.value))
    context_->answers.add(ended->by, std::move(effect.why));
}

void replica_runner::fail_open(const failure& why) {
  requests_.erase_if([&](std::uint64_t, open_request& open) {
    context_->answers.add(open.by, why);
    return true;
  });
}

// -- steps --

void replica_runner::run(step_effect& effect, host_effects& more) {
  std::vector<const push_request*> pushes;
  for (const auto& push : effect.pushes)
    pushes.push_back(push.get());
  const auto done = effect.is_gathered ? gather(effect) : values_->apply(effect.what, pushes);
  if (!done)
    return host_.discarded(done.error(), now(), more);
  host_.applied(now(), more);
  applied(pushes);
  verify();
}

/// Adds a push that has passed all checks to the update buffer. It counts as applied, and it is
/// applied before any values are read.
result<void> replica_runner::gather(step_effect& effect) {
  if (auto valid = values_->admit(effect.what, *effect.pushes.front()); !valid)
    return valid;
  if (admitted_.empty())
    context_->self->send(context_->self, step_atom_v); // After the requests that wait already.
  gathered_.push_back(std::move(effect.pushes.front()));
  admitted_.push_back({std::move(effect.what), gathered_.back().get()});
  return {};
}

void replica_runner::run(apply_gathered_effect&, host_effects&) { apply_admitted(); }

void replica_runner::apply_admitted() {
  values_->apply_admitted(admitted_);
  admitted_.clear();
  gathered_.clear();
}

/// Computes the checksum of each Nth version, for the coordinator to compare with other replicas'.
void replica_runner::verify() {
  const auto interval = context_->options.verify_replicas;
  if (interval == 0 || host_.state()->version() % interval != 0)
    return;
  apply_admitted(); // All replicas must have this very version, whatever they gathered.
  host_.verified(values_->checksum());
}

void replica_runner::end_gathering() {
  decide([&](host_effects& effects) { host_.end_gathering(now(), effects); });
}

// -- what others hear of it --

void replica_runner::applied(std::span<const push_request* const> pushes) {
  if (context_->options.works)
    context_->options.works();
  if (recorder_)
    recorder_->applied(now(), host_.state()->version(), pushes, host_.is_bsp());
}

void replica_runner::flush_record() {
  if (recorder_)
    recorder_->flush();
}

void replica_runner::run(workers_effect&, host_effects&) {
  if (recorder_)
    recorder_->set_workers(now(), host_.desired().workers);
}

void replica_runner::run(report_effect&, host_effects&) { context_->report(); }

void replica_runner::run(note_effect& effect, host_effects&) { log(effect.level, effect.text); }

void replica_runner::log(log_level level, const std::string& what) const {
  if (context_->options.log)
    context_->options.log(level, "shard " + std::to_string(host_.shard().value) + ": " + what);
}

server_counters replica_runner::counters() const {
  auto all = host_.counters();
  all.bytes_sent = bytes_sent_;
  all.bytes_received = bytes_received_;
  if (const auto& keeper = context_->options.keeper; keeper && keeper->notes)
    all.notes = keeper->notes->all();
  return all;
}

} // namespace troupe
