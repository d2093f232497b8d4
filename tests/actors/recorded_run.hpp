// Records a small run of workers and two chains in random order, without actors. The record has old
// gradients, workers that die and batches that come twice.
#pragma once

#include "actors/protocol/worker/router.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "actors/tables/table_store.hpp"
#include "actors/training/cached_values.hpp"
#include "actors/training/gradient_computer.hpp"
#include "serialization/layout.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::test {

/// A dense table of several blocks and a sparse one, with adam and steps scaled by staleness. Every
/// change of order or version shows.
inline job_spec recorded_job(const consistency& sync) {
  job_spec job;
  job.name = "recorded";
  job.partitions = 8;
  job.servers = 2;
  job.workers = 3;
  job.samples = 60;
  job.batch_samples = 2;
  job.epochs = 4;
  job.tables = {table_of("w", 9000), table_of("rows", 1)};
  job.tables[1].kind = table_kind::sparse;
  job.tables[1].shape = {};
  job.tables[1].width = 4;
  for (auto& table : job.tables) {
    table.sync = sync;
    table.init = {initializer_kind::normal, 0.5f};
    table.optimizer.kind = optimizer_kind::adam;
    table.optimizer.learning_rate = 0.01f;
    table.optimizer.clip_norm = 5;
    table.optimizer.full_rate_staleness = 1.5f;
  }
  return job;
}

class noisy_trainer : public trainer {
public:
  void keys(const batch& work, key_lists touched) override {
    touched[1] = {work.id.value % 7, 100 + work.id.value % 3, 5};
  }
  double gradient(const batch& work, const_tensors parameters, mutable_tensors gradients) override {
    double loss = 0;
    for (std::size_t t = 0; t < gradients.size(); ++t)
      for (std::size_t i = 0; i < gradients[t].size(); ++i) {
        gradients[t][i] = parameters[t][i] - static_cast<float>((work.seed >> (i % 32)) & 0xff);
        loss += gradients[t][i];
      }
    return loss;
  }
};

inline trainer_factory noisy_trainers() {
  return [] { return std::make_unique<noisy_trainer>(); };
}

class recorded_run {
public:
  recorded_run(const job_spec& job, std::uint64_t seed) : job_(job), random_(seed) {
    view_.config = {1};
    view_.shard_of = make_partition_map(job_, 2, {});
    for (std::uint32_t c = 0; c < 2; ++c) {
      view_.chains.push_back({{c}, {}, true});
      std::vector<partition_id> here;
      for (std::uint32_t p = 0; p < job_.partitions; ++p)
        if (view_.shard_of[p].value == c)
          here.push_back({p});
      auto& made = chains_.emplace_back();
      made.values = std::make_unique<table_store>(job_, here, pool_);
      made.recorder = std::make_unique<trace_recorder>(
        record_options{folder_.path()},
        storage::trace_header{fingerprint(job_), {c}, {1}, 0, {role::server, c, {c + 1}}, here});
    }
    for (std::uint64_t b = 0; b < job_.batches(); ++b)
      todo_.push_back({b});
    for (std::uint32_t w = 0; w < job_.workers; ++w)
      hire(w);
    if (!storage::begin_trace(folder_.path(), job_))
      throw std::runtime_error{"no record begun"};
  }

  /// At `killed` of a hundred deliveries the worker dies.
  void run(unsigned killed) {
    for (;;) {
      for (auto& each : workers_)
        if (each.busy == std::nullopt && !todo_.empty())
          begin(each);
      std::vector<worker*> waiting;
      for (auto& each : workers_)
        if (!each.parts.empty())
          waiting.push_back(&each);
      if (waiting.empty())
        break;
      auto& next = *waiting[draw(waiting.size())];
      now_ += std::chrono::microseconds{10};
      if (draw(100) < killed)
        kill(next);
      else
        deliver(next, draw(next.parts.size()));
    }
    for (auto& each : chains_)
      each.recorder->flush();
  }

  const std::filesystem::path& folder() const { return folder_.path(); }
  std::uint64_t repeated() const { return repeated_; }
  std::uint64_t staleness() const { return staleness_; }

  /// Returns the values of the dense table and the rows of these keys.
  std::vector<float> parameters(const std::vector<std::uint64_t>& keys) const {
    auto way = make_router();
    router_effects effects;
    way.ask({1}, {{}, question(keys)}, {}, effects);
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const auto each = effects[i]; // A copy, because `effects` may grow.
      if (const auto* part = std::get_if<send_part_effect>(&each)) {
        auto found = chains_[part->to.shard.value].values->read(*part->what.pull, {});
        way.answered(part->part, {{}, std::move(found)}, {}, effects);
        continue;
      }
      const auto& found = *std::get<answered_effect>(each).answer.pulled;
      std::vector<float> all(9000);
      for (const auto& x : found.pieces)
        std::copy_n(x.values.get(), x.where.count,
                    all.begin() + static_cast<std::ptrdiff_t>(x.where.first));
      all.insert(all.end(), found.rows[0].values.get(),
                 found.rows[0].values.get() + found.rows[0].where.floats());
      return all;
    }
    return {};
  }

  /// Returns a pull of all dense elements and the rows of these keys.
  pull_request question(const std::vector<std::uint64_t>& keys) const {
    const auto kept = std::make_shared<std::vector<std::uint64_t>>(keys);
    pull_request all;
    all.latest = true;
    all.ranges = {{{0}, 0, 9000}};
    all.rows = {{{1}, 4, kept->size(), {kept, kept->data()}}};
    return all;
  }

private:
  struct chain {
    std::unique_ptr<table_store> values;
    std::unique_ptr<trace_recorder> recorder;
    std::uint64_t version = 0;
    std::set<batch_id> applied;
  };
  struct worker {
    step_header self;
    std::unique_ptr<router> way;
    std::unique_ptr<gradient_computer> computer;
    std::optional<batch_id> busy;
    std::vector<row_keys> rows;
    std::vector<send_part_effect> parts;
  };

  std::size_t draw(std::size_t below) { return random_() % below; }

  router make_router() const {
    router made{job_};
    router_effects none;
    made.set_view(view_, {}, none);
    return made;
  }

  void hire(std::uint32_t index) {
    worker made;
    made.self.worker = {index};
    made.self.incarnation = {++starts_};
    made.way = std::make_unique<router>(make_router());
    made.computer = std::make_unique<gradient_computer>(job_, noisy_trainers());
    workers_.push_back(std::move(made));
  }

  void kill(worker& who) {
    if (who.busy)
      todo_.push_front(*who.busy);
    const auto index = who.self.worker.value;
    std::erase_if(workers_, [&](const auto& x) { return x.self.worker.value == index; });
    std::vector<clock_entry> left;
    for (const auto& each : workers_)
      left.push_back({each.self.worker, each.self.incarnation, 0, true});
    for (auto& each : chains_)
      each.recorder->set_workers(now_, left);
    hire(index);
  }

  void begin(worker& who) {
    who.busy = todo_.front();
    todo_.pop_front();
    who.self.batch = *who.busy;
    who.rows = who.computer->keys({0, *who.busy}).rows;
    ask(who, {{}, pull_request{who.self, false, {{{0}, 0, 9000}}, who.rows}});
  }

  void ask(worker& who, request what) {
    router_effects effects;
    who.way->ask({++token_}, std::move(what), {}, effects);
    follow(who, effects);
  }

  void follow(worker& who, router_effects& effects) {
    for (auto& each : effects) {
      if (auto* part = std::get_if<send_part_effect>(&each))
        who.parts.push_back(std::move(*part));
      else if (auto& done = std::get<answered_effect>(each).answer; done.pulled)
        compute(who, *done.pulled);
      else {
        who.busy.reset();
        ++who.self.clock;
      }
    }
  }

  void compute(worker& who, const pull_reply& answer) {
    buffer_pool pool;
    const auto whole = *hold(job_, *empty_cache(job_), answer, pool);
    gradient_task task{0, *who.busy, whole->tables, who.rows, answer.version, {}};
    task.parameters[1] = answer.rows[0].values;
    auto outcome = who.computer->compute(task);
    ask(who, {push_request{who.self,
                           {{0}, {1}},
                           answer.version,
                           outcome.norm,
                           std::move(outcome.pieces),
                           std::move(outcome.rows)},
              {}});
  }

  void deliver(worker& who, std::size_t which) {
    auto part = std::move(who.parts[which]);
    who.parts.erase(who.parts.begin() + static_cast<std::ptrdiff_t>(which));
    auto& to = chains_[part.to.shard.value];
    reply answer;
    if (part.what.push)
      answer.pushed = apply(to, *part.what.push);
    if (part.what.pull) {
      answer.pulled = to.values->read(*part.what.pull, {});
      answer.pulled->version = to.version;
      to.recorder->answered(part.what.pull->step, to.version);
    }
    router_effects effects;
    who.way->answered(part.part, std::move(answer), {}, effects);
    follow(who, effects);
  }

  push_reply apply(chain& to, const push_request& push) {
    if (!to.applied.insert(push.step.batch).second) {
      ++repeated_;
      to.recorder->repeated(now_, push.step, push.base_version);
      return {to.version, true};
    }
    const auto staleness = to.version - std::min(to.version, push.base_version);
    staleness_ += staleness;
    const push_request* const only = &push;
    if (!to.values->apply({{{0}, {1}}, {}, staleness, 1}, {&only, 1}))
      throw std::runtime_error{"a step failed"};
    to.recorder->applied(now_, ++to.version, {&only, 1}, false);
    return {to.version, false};
  }

  job_spec job_;
  std::mt19937_64 random_;
  storage::temporary_directory folder_;
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
  view view_;
  std::vector<chain> chains_;
  std::vector<worker> workers_;
  std::deque<batch_id> todo_;
  time_point now_{std::chrono::seconds{1}};
  std::uint64_t token_ = 0;
  std::uint64_t starts_ = 0;
  std::uint64_t repeated_ = 0;
  std::uint64_t staleness_ = 0;
};

} // namespace troupe::test
