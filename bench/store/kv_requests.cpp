#include "bench/store/kv_requests.hpp"

#include "serialization/layout.hpp"

#include <utility>

namespace troupe::bench {

job_spec one_table_job(std::uint64_t floats, std::uint32_t workers, std::uint32_t servers) {
  job_spec job;
  job.name = "bench";
  job.servers = servers;
  job.workers = workers;
  job.samples = 1 << 20;
  job.batch_samples = 1;
  job.epochs = 1 << 18; // More batches than any worker pushes.
  table_spec table;
  table.name = "w";
  table.shape = {floats};
  table.optimizer.learning_rate = 1e-6f; // The values stay finite however long it runs.
  job.tables = {table};
  return job;
}

job_spec sparse_table_job(std::uint32_t width, std::uint32_t workers, std::uint32_t servers) {
  auto job = one_table_job(1, workers, servers);
  job.tables[0].kind = table_kind::sparse;
  job.tables[0].shape.clear();
  job.tables[0].width = width;
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

kv_requests::kv_requests(job_spec job, std::uint32_t worker, std::vector<row_keys> lists)
    : job_(std::move(job)), worker_{worker}, lists_(std::move(lists)) {}

step_header kv_requests::step() const {
  return {
    worker_, first_start(worker_.value), {1}, {pushed_ * job_.workers + worker_.value}, pushed_};
}

push_request kv_requests::next_push(const std::shared_ptr<const float>& gradient) {
  push_request made;
  made.step = step();
  made.tables = {{0}};
  for (const auto& where : ranges_)
    made.pieces.push_back({where, {gradient, gradient.get() + where.first}});
  if (!lists_.empty())
    made.rows.push_back({lists_[pushed_ % lists_.size()], gradient});
  ++pushed_;
  return made;
}

pull_request kv_requests::whole() {
  pull_request made{step(), false, ranges_, {}};
  if (!lists_.empty())
    made.rows.push_back(lists_[pulled_++ % lists_.size()]);
  return made;
}

pull_request kv_requests::first_element() const { return {step(), true, {{{0}, 0, 1}}}; }

void ask(caf::event_based_actor* self, const kv& to, std::optional<push_request> push,
         std::optional<pull_request> pull, std::function<void(const kv_answer&)> then) {
  const bool pulls = pull.has_value();
  const caf::duration no_timer; // The benchmark has a limit of its own.
  self->request(to, no_timer, request{std::move(push), std::move(pull)})
    .then(
      [pulls, then](reply& found) {
        kv_answer answer;
        if (found.pulled)
          answer.pulled = *std::move(found.pulled);
        else if (pulls) // No pull waits on these tables.
          answer.failed = failure{errc::not_yet, "an answer without values"};
        then(answer);
      },
      [then](const caf::error& why) {
        then({from_caf(why), {}});
      });
}

} // namespace troupe::bench
