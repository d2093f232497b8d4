#include "actors/graph/ranks/rank_backend.hpp"

#include "actors/graph/ranks/rank_model.hpp"
#include "actors/graph/ranks/rank_watch.hpp"
#include "actors/graph/ranks/shared_status.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/processes/child_processes.hpp"
#include "actors/graph/run_failed.hpp"
#include "actors/training/evaluators.hpp"
#include "actors/transport/streams/socket_address.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/resource_limits.hpp"
#include "kernels/executors/team_memory.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

class rank_backend final : public backend {
public:
  explicit rank_backend(const backend_setup& setup)
      : what_(setup.what), job_(what_.job),
        children_({.command = setup.command, .run_directory = what_.options.run_directory}),
        watch_(job_.workers, steady_now()), evaluators_(what_.evaluators) {
    std::size_t parameters = 0;
    for (const auto& table : job_.tables)
      parameters += table.size();
    status_.emplace(
      required(shared_status::create(what_.options.run_directory, job_.workers, parameters)));
    cluster_file cluster;
    cluster.members = member_plans_of(what_);
    cluster.secret = draw_random();
    cluster.listen_host = "127.0.0.1";
    share_memory(setup);
    if (!memory_)
      open_listeners();
    required(write_cluster_file(what_.options.run_directory, cluster));
  }

  ~rank_backend() override { children_.kill_all(); }

  void describe(session_options& into) const override {
    into.has_coordinator = false;
    into.evaluates = evaluated_parameters::offered;
    into.kills = what_.options.kills;
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank)
      into.processes.push_back(
        {{role::worker, rank}, what_.workers_name, what_.options.workers.on_death, {rank}});
  }

  result<process_started> start(process_name who) override {
    return children_.start(who, memory_ ? memory_->descriptor() : listeners_[who.index]);
  }

  news tick() override {
    news fresh{children_.tick()};
    if (evaluating_.valid() && evaluating_.wait_for(0s) == std::future_status::ready)
      fresh.evaluated.push_back(evaluating_.get());
    return fresh;
  }

  std::optional<job_update> status(const observer_status& report) override {
    auto& head = status_->head();
    head.stop = report.stop;
    if (report.deaths != deaths_) { // Ranks that wait for a lost one begin again.
      deaths_ = report.deaths;
      head.generation.publish(head.generation.value() + 1);
    }
    const bool is_offered = head.offered != head.taken;
    job_update now;
    now.desired_state = picture();
    if (is_offered)
      now.offered = head.epoch;
    if (now.desired_state.phase != job_phase::gathering)
      now.sequence = ++sequence_;
    // The final figures were reported by the call before.
    now.stop = std::exchange(was_done_, head.done.load());
    if (now.stop && head.unsaved)
      now.failed =
        failure{errc::job_failed, "the last checkpoint cannot be written: see logs/worker-0.log"};
    return now;
  }

  /// Evaluates the offered parameters, on a thread of its own.
  void evaluate(std::uint64_t epoch) override {
    auto& head = status_->head();
    evaluation_message next;
    next.number = epoch;
    auto all = status_->parameters();
    for (const auto& table : job_.tables) {
      const auto own = all.first(static_cast<std::size_t>(table.size()));
      next.parameters.emplace_back(own.begin(), own.end());
      all = all.subspan(own.size());
    }
    head.taken = head.offered.load();
    evaluating_ = starting_threads([&] {
      return std::async(std::launch::async, [this, next = std::move(next)]() mutable {
        evaluate_with(evaluators_, next);
        return std::move(next);
      });
    });
  }

  void kill(process_name who) override { children_.kill(who); }
  void end() override { children_.kill_all(); }

  void complete(run_statistics& statistics) const override {
    statistics.without_servers(what_.rules().sync_word, batches_of(status_->head().begun));
  }
  std::string summary(const run_statistics&) const override {
    const auto& head = status_->head();
    if (!head.done)
      return {};
    return fmt::format("parameters are equal on all {} workers, checksum {:016x}\n", job_.workers,
                       head.checksum.load());
  }

private:
  /// Makes the memory in which the ranks add up. The launcher keeps it for ranks that start again.
  void share_memory(const backend_setup& setup) {
    auto made = kernels::team_memory::of_processes(job_.workers, rank_model::sum_floats(job_));
    if (made)
      memory_.emplace(*std::move(made));
    else
      setup.tell({.text = "sums go over links: " + with_limits(made.error().text)});
    status_->head().in_memory = memory_.has_value();
  }

  /// The launcher keeps the sockets, so that a rank that starts again has its address.
  void open_listeners() {
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank) {
      listeners_.push_back(required(make_listener({"127.0.0.1", 0})));
      status_->line(rank).port = required(local_endpoint(listeners_.back())).port;
    }
  }

  /// Returns the job's status as a coordinator would report it. A rank that is silent is left out.
  job_status picture() {
    const auto& head = status_->head();
    std::vector<rank_watch::heartbeat> heartbeats;
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank)
      heartbeats.push_back({status_->line(rank).incarnation, status_->line(rank).heartbeats});
    watch_.look(heartbeats, steady_now());
    has_trained_ = has_trained_ || status_->line(0).training;
    const bool has_last = head.done || (head.offered != head.taken && head.last);
    job_status now;
    now.phase = has_last       ? job_phase::finished
                : has_trained_ ? job_phase::training
                               : job_phase::gathering;
    now.checkpoint = head.checkpoint;
    std::uint64_t newest = 0;
    for (std::uint32_t rank = 0; rank < job_.workers; ++rank) {
      newest = std::max<std::uint64_t>(newest, status_->line(rank).clock);
      if (!watch_.is_silent(rank))
        now.members.push_back(status_of(rank));
    }
    now.batches_done = batches_of(newest);
    return now;
  }

  member_status status_of(std::uint32_t rank) const {
    const auto& line = status_->line(rank);
    member_status status;
    status.member = {role::worker, rank, {line.incarnation}};
    status.state = line.incarnation == 0  ? member_state::absent
                   : status_->head().done ? member_state::finished
                   : line.training        ? member_state::active
                                          : member_state::joining;
    status.rss_bytes_max = line.rss;
    status.clock = line.clock;
    auto& told = status.worker;
    told.pushes_sent = line.computed;
    told.pushes_acknowledged = line.batches;
    told.pushes_refused = line.unusable;
    told.samples = line.samples;
    told.batches_computed = line.computed;
    told.bytes_sent = told.bytes_received = line.bytes;
    told.wait_us = line.wait_us;
    told.loss_sum = line.loss;
    told.loss_count = line.losses;
    told.notes = line.notes.read();
    return status;
  }

  /// Returns the number of batches in the values at that clock.
  std::uint64_t batches_of(std::uint64_t steps) const {
    return steps >= bsp_clock_count(job_) ? job_.batches() : bsp_first(job_, steps).value;
  }

  const plan& what_;
  const job_spec& job_;
  child_processes children_;
  std::optional<shared_status> status_;
  std::optional<kernels::team_memory> memory_;
  std::vector<int> listeners_; ///< By rank; empty where the ranks share memory.
  rank_watch watch_;
  std::vector<death> deaths_; ///< As last published to the ranks.
  std::uint64_t sequence_ = 0;
  bool has_trained_ = false;
  bool was_done_ = false;
  evaluators evaluators_;
  std::future<evaluation_message> evaluating_;
};

} // namespace

std::unique_ptr<backend> make_rank_backend(const backend_setup& setup) {
  return std::make_unique<rank_backend>(setup);
}

} // namespace troupe
