// Measures messages within one process: a worker's pushes to a server actor and its pulls, also
// through stages that change no request, next to plain calls of the kernel that the server runs.
// Also counts the allocations of a message, which must not grow with the tensor: tensors come from
// pools and are handed over by reference.
#include "actors/graph/launch/actor_config.hpp"
#include "base/buffer.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "bench/checksum.hpp"
#include "bench/child.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "bench/round_trips.hpp"
#include "bench/store/allocations.hpp"
#include "bench/store/kv_requests.hpp"
#include "bench/store/server_host.hpp"
#include "kernels/optimizer.hpp"

#include "caf/actor_system.hpp"
#include "caf/send.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>

namespace troupe::bench {

/// The next task of the client's actor.
using task = std::function<void(caf::event_based_actor*)>;

} // namespace troupe::bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::task)

namespace troupe::bench {

namespace {

constexpr const char* actor_name = "server actor";
constexpr const char* one_stage_name = "1 stage before it";
constexpr const char* three_stages_name = "3 stages before it";
constexpr const char* call_name = "plain calls";

struct options : common_options {
  std::vector<std::size_t> windows{1, 8};
};

/// Runs operations with messages or plain calls.
class contestant {
public:
  virtual ~contestant() = default;
  virtual void run(operation what, round_trips& trips) = 0;
};

/// A server with one table, stages in front of it, and an actor that asks the first one.
class actors final : public contestant {
public:
  actors(std::size_t floats, std::size_t stages)
      : job_(one_table_job(floats, 1, 1)), requests_(job_, 0, true), pool_(),
        gradient_(pool_.floats(floats)), server_(spawn_serving(system_, job_, 0, {})),
        client_(system_.spawn([](caf::event_based_actor* self) -> caf::behavior {
          return {[self](const task& next) { next(self); }};
        })) {
    std::fill_n(gradient_.get(), floats, 1.0f);
    for (std::size_t i = 0; i < stages; ++i)
      asked_ = spawn_stage(system_, {.name = "plain"}, std::make_unique<pass_through>(), asked_);
  }
  ~actors() override {
    caf::anon_send_exit(client_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(server_, caf::exit_reason::user_shutdown);
  }

  void run(operation what, round_trips& trips) override {
    ended_ = {};
    caf::anon_send(client_,
                   task{[&, what](caf::event_based_actor* self) { send_more(self, what, trips); }});
    ended_.get_future().get();
  }

private:
  void send_more(caf::event_based_actor* self, operation what, round_trips& trips) {
    while (trips.may_send()) {
      const auto number = trips.begin();
      std::optional<push_request> push;
      std::optional<pull_request> pull;
      if (what == operation::push)
        push = requests_.next_push(gradient_);
      else
        pull = requests_.whole();
      ask(self, asked_, std::move(push), std::move(pull),
          [this, self, what, number, &trips](const kv_answer& answer) {
            if (answer.failed) {
              fmt::print(stderr, "local_bench: {}\n", answer.failed->text);
              _exit(1);
            }
            for (const auto& x : answer.pulled.pieces)
              sum_ += checksum(x.values.get(), x.where.count * sizeof(float));
            trips.end(number);
            if (trips.done())
              ended_.set_value();
            else
              send_more(self, what, trips);
          });
    }
  }

  job_spec job_;
  kv_requests requests_;
  actor_config config_;
  caf::actor_system system_{config_};
  buffer_pool pool_;
  std::shared_ptr<float> gradient_;
  server_handle server_;
  kv asked_ = server_;
  caf::actor client_;
  std::promise<void> ended_;
  std::uint64_t sum_ = 0;
};

/// The arithmetic alone: a step into another array, as the server takes it, and a reading.
class calls final : public contestant {
public:
  explicit calls(std::size_t floats)
      : floats_(floats), gradient_(pool_.floats(floats)), values_(pool_.floats(floats)),
        next_values_(pool_.floats(floats)) {
    for (const auto& x : {gradient_, values_, next_values_})
      std::fill_n(x.get(), floats, 1.0f);
  }

  void run(operation what, round_trips& trips) override {
    while (!trips.done()) {
      const auto number = trips.begin();
      if (what == operation::push)
        step();
      else
        sum_ += checksum(values_.get(), floats_ * sizeof(float));
      asm volatile("" : : "r"(&sum_) : "memory"); // Keeps every reading.
      trips.end(number);
    }
  }

private:
  void step() {
    const std::span<float> to{next_values_.get(), floats_}, from{values_.get(), floats_};
    if (!kernels::optimizer_step(to, {}, from, {}, {gradient_.get(), floats_}, {.rate = 1e-6f}))
      throw std::runtime_error{"a value is not finite"};
    std::swap(values_, next_values_);
  }

  std::size_t floats_;
  buffer_pool pool_;
  std::shared_ptr<float> gradient_, values_, next_values_;
  std::uint64_t sum_ = 0;
};

struct figures {
  std::vector<double> rates, cpu, counts, bytes, trips; ///< For each message, except the rates.
};

void note(figures& of, contestant& who, operation what, std::size_t count, std::size_t window) {
  round_trips trips{count, window};
  const auto each = static_cast<double>(count);
  const auto before = allocations_now();
  const double cpu_before = cpu_seconds(getpid()), begin = seconds_now();
  who.run(what, trips);
  of.rates.push_back(each / (seconds_now() - begin));
  of.cpu.push_back(1e6 * (cpu_seconds(getpid()) - cpu_before) / each);
  const auto after = allocations_now();
  of.counts.push_back(static_cast<double>(after.count - before.count) / each);
  of.bytes.push_back(static_cast<double>(after.bytes - before.bytes) / each);
  for (const double seconds : trips.seconds())
    of.trips.push_back(1e6 * seconds);
}

void measure_case(const options& chosen, std::size_t bytes, std::size_t window) {
  const std::size_t bytes_a_run = std::size_t{chosen.full ? 2048u : 32u} << 20;
  const std::size_t count =
    std::clamp<std::size_t>(bytes_a_run / bytes, 8, chosen.full ? 50'000 : 1'000);
  std::vector<std::pair<std::string, std::unique_ptr<contestant>>> entries;
  if (chosen.wants(actor_name))
    entries.emplace_back(actor_name, std::make_unique<actors>(bytes / sizeof(float), 0));
  if (chosen.wants(one_stage_name))
    entries.emplace_back(one_stage_name, std::make_unique<actors>(bytes / sizeof(float), 1));
  if (chosen.wants(three_stages_name))
    entries.emplace_back(three_stages_name, std::make_unique<actors>(bytes / sizeof(float), 3));
  if (chosen.wants(call_name))
    entries.emplace_back(call_name, std::make_unique<calls>(bytes / sizeof(float)));
  std::vector<row> rows;
  for (const auto kind : {operation::push, operation::pull}) {
    std::vector<figures> found(entries.size());
    figures warm_up;
    for (const auto& [name, who] : entries)
      note(warm_up, *who, kind, std::max(count / 4, 2 * window), window);
    for (std::size_t round = 0; round < chosen.rounds; ++round)
      for (std::size_t i = 0; i < entries.size(); ++i)
        note(found[i], *entries[i].second, kind, count, window);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      row made;
      made.text("operation", "operation", kind == operation::push ? "push" : "pull")
        .text("contestant", "contestant", entries[i].first)
        .hidden("bytes", bytes)
        .hidden("window", window)
        .hidden("rounds", chosen.rounds)
        .range("messages_s", "messages/s", spread_of(found[i].rates), 0)
        .times("us", "us p50 / p99 / p99.9", percentiles_of(found[i].trips), 2)
        .range("cpu_us", "CPU us each", spread_of(found[i].cpu), 2)
        .range("allocations", "allocations each", spread_of(found[i].counts), 1)
        .range("allocated_bytes", "bytes each", spread_of(found[i].bytes), 0);
      rows.push_back(std::move(made));
    }
  }
  print(fmt::format("{}, window {}; {} rounds of {}; peak memory {:.0f} MB", size_text(bytes),
                    window, chosen.rounds, count, peak_megabytes(getpid())),
        rows, chosen.json);
}

int run(int argc, char** argv) {
  options chosen;
  CLI::App app{"How fast updates and queries go to a server within one process.", "local_bench"};
  declare(app, chosen, {actor_name, one_stage_name, three_stages_name, call_name});
  app.add_option("--windows", chosen.windows, "Messages under way at a time")
    ->delimiter(',')
    ->check(CLI::Range(1, 1024))
    ->capture_default_str();
  if (const auto done = parse(app, argc, argv))
    return *done;
  auto sizes = chosen.sizes;
  if (sizes.empty())
    sizes = {4 << 10, 1 << 20, 40 << 20};
  for (const std::size_t bytes : sizes)
    for (const std::size_t window : chosen.windows)
      measure_case(chosen, bytes / 4 * 4, window);
  return 0;
}

} // namespace
} // namespace troupe::bench

int main(int argc, char** argv) {
  try {
    return troupe::bench::run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "local_bench: {}\n", problem.what());
    return 1;
  }
}
