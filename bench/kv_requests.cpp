#include "bench/kv_requests.hpp"

#include "serialization/layout.hpp"

#include <chrono>
#include <utility>

namespace troupe::bench {

namespace {

/// Longer than a server is frozen for.
constexpr std::chrono::minutes patience{5};

} // namespace

job_spec one_table_job(std::uint64_t floats, std::uint32_t workers, std::uint32_t servers) {
  job_spec job;
  job.name = "bench";
  job.servers = servers;
  job.workers = workers;
  job.samples = 1 << 20;
  job.batch_samples = 1;
  job.passes = 1 << 18; // More batches than anyone pushes.
  table_spec table;
  table.name = "w";
  table.shape = {floats};
  table.optimizer.learning_rate = 1e-6f; // The values stay finite however long it runs.
  job.tables = {table};
  return job;
}

incarnation_id first_start(std::uint32_t worker) { return {1000 + worker}; }

kv_requests::kv_requests(job_spec job, std::uint32_t worker, bool cut)
    : job_(std::move(job)), worker_{worker} {
  const auto& table = job_.tables[0];
  if (!cut)
    ranges_ = {{{0}, 0, table.size()}};
  else
    for (std::uint64_t i = 0; i < block_count(table); ++i)
      ranges_.push_back(block_range(job_, {0}, i));
}

step_header kv_requests::step() const {
  return {
    worker_, first_start(worker_.value), {1}, {pushed_ * job_.workers + worker_.value}, pushed_};
}

update kv_requests::next_push(const std::shared_ptr<const float>& gradient) {
  update made;
  made.step = step();
  made.tables = {{0}};
  for (const auto& where : ranges_)
    made.pieces.push_back({where, {gradient, gradient.get() + where.first}});
  ++pushed_;
  return made;
}

query kv_requests::whole() const { return {step(), false, ranges_}; }

query kv_requests::first_element() const { return {step(), true, {{{0}, 0, 1}}}; }

void ask(caf::event_based_actor* self, const kv& to, std::optional<update> push,
         std::optional<query> pull, std::function<void(const kv_answer&)> then) {
  struct open_operation {
    kv_answer answer;
    int waiting = 0;
    std::function<void(const kv_answer&)> then;

    void settle() {
      if (--waiting == 0)
        then(answer);
    }
    void fail(const caf::error& why) {
      answer.failed = from_caf(why);
      settle();
    }
  };
  const auto open = std::make_shared<open_operation>();
  open->waiting = (push ? 1 : 0) + (pull ? 1 : 0);
  open->then = std::move(then);
  const auto failed = [open](const caf::error& why) { open->fail(why); };
  if (push)
    self->request(to, patience, push_atom_v, *std::move(push))
      .then([open](const receipt&) { open->settle(); }, failed);
  if (pull)
    self->request(to, patience, pull_atom_v, *std::move(pull))
      .then(
        [open](values& pulled) {
          open->answer.pulled = std::move(pulled);
          open->settle();
        },
        failed);
}

} // namespace troupe::bench
