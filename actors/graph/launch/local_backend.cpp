#include "actors/graph/launch/local_backend.hpp"

#include "actors/graph/launch/actor_backend.hpp"
#include "actors/graph/launch/local_cluster.hpp"
#include "actors/graph/launch/simulation.hpp"
#include "actors/graph/run_failed.hpp"

#include "fmt/format.h"

#include <cassert>
#include <utility>

namespace troupe {

namespace {

class thread_backend : public actor_backend {
public:
  explicit thread_backend(const backend_setup& setup)
      : thread_backend(setup, setup.what.options.servers.count) {
    begin(nullptr);
  }
  ~thread_backend() override { leave(); }

  result<process_started> start(process_name) override {
    assert(false); // The session knows of no processes.
    return {errc::invalid_argument, "all members are in one process"};
  }
  news tick() override {
    news fresh{{}, evaluations_.take()};
    for (auto& each : notices_.take())
      fresh.events.emplace_back(std::move(each));
    return fresh;
  }
  void kill(process_name) override { assert(false); }
  void end() override {}

protected:
  thread_backend(const backend_setup& setup, std::size_t threads)
      : actor_backend(setup.what, threads) {}

  /// Starts the members. `simulated`: runs them, and outlives this; null: threads run them.
  void begin(simulation* simulated) {
    local_.emplace(required(local_cluster::start(
      system_, what_,
      [notices = notices_](const notice& what) {
        if (what.level >= log_level::warn)
          notices.put(what);
      },
      simulated)));
    observe(new_observer(), local_->client(), local_->coordinator(), true, !simulated);
  }
  void end_members() {
    leave();
    local_.reset();
  }

private:
  inbox<notice> notices_;
  std::optional<local_cluster> local_;
};

class simulated_backend final : public thread_backend {
public:
  explicit simulated_backend(const backend_setup& setup)
      : thread_backend(setup, 0), simulation_(system_, setup.what.job.seed) {
    begin(&simulation_);
  }
  ~simulated_backend() override { end_members(); }

  news tick() override {
    simulation_.pass(thread_backend::pause());
    return thread_backend::tick();
  }
  time_point now() const override { return system_.clock().now().time_since_epoch(); }
  time_point begun_at(time_point) const override { return begun_at_; }
  std::chrono::milliseconds pause() const override { return {}; }

  std::string summary(const run_statistics& statistics) const override {
    const auto last = statistics.snapshot(now());
    const auto seconds = [](time_point x) { return std::chrono::duration<double>(x).count(); };
    return fmt::format("simulated {:.1f} s, staleness mean {:.1f}, max {} versions, in {:.1f} s\n",
                       seconds(last.elapsed), last.staleness_mean, last.staleness_max,
                       seconds(steady_now() - called_at_));
  }

private:
  time_point called_at_ = steady_now(); ///< By the machine's clock.
  simulation simulation_;
  time_point begun_at_ = now();
};

} // namespace

std::unique_ptr<backend> make_thread_backend(const backend_setup& setup) {
  return std::make_unique<thread_backend>(setup);
}

std::unique_ptr<backend> make_simulated_backend(const backend_setup& setup) {
  return std::make_unique<simulated_backend>(setup);
}

} // namespace troupe
