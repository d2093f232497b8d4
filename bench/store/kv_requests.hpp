// Makes the benchmarks' requests to a kv: only this file knows requests and replies.
#pragma once

#include "actors/kv.hpp"

#include "caf/event_based_actor.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe::bench {

/// One operation of a worker on its kv.
enum class operation { push, pull, push_pull };

/// Returns the job of a benchmark: one asp table of `floats` floats, with SGD.
job_spec one_table_job(std::uint64_t floats, std::uint32_t workers, std::uint32_t servers);
/// Returns the job of a benchmark with one sparse table instead.
job_spec sparse_table_job(std::uint32_t width, std::uint32_t workers, std::uint32_t servers);
incarnation_id first_start(std::uint32_t worker);

/// The requests of one worker.
class kv_requests {
public:
  /// `cut`: the kv takes pieces as its blocks lie; a router cuts for itself.
  kv_requests(job_spec job, std::uint32_t worker, bool cut);
  /// For a sparse table: each request names the next of these lists.
  kv_requests(job_spec job, std::uint32_t worker, std::vector<row_keys> lists);

  /// Returns the push of this worker's next batch; the gradient is of the whole table, or of a
  /// list's rows.
  push_request next_push(const std::shared_ptr<const float>& gradient);
  /// Return a pull of the whole table or of a list's rows, and one of the first element as it is
  /// now.
  pull_request whole();
  pull_request first_element() const;

private:
  step_header step() const;

  job_spec job_;
  worker_id worker_;
  std::vector<range> ranges_;
  std::vector<row_keys> lists_;
  std::uint64_t pulled_ = 0;
  std::uint64_t pushed_ = 0;
};

struct kv_answer {
  std::optional<failure> failed;
  pull_reply pulled;
};

/// Sends push and pull as one operation; calls `then`, as part of `self`, when all is answered.
void ask(caf::event_based_actor* self, const kv& to, std::optional<push_request> push,
         std::optional<pull_request> pull, std::function<void(const kv_answer&)> then);

} // namespace troupe::bench
