// A program whose user code misbehaves, in the place and in the way that its options name.
//
// It counts batches: each adds 1 to every element of its table. So a run that is done has sums that
// are right, and test accuracy 1.
//
// misbehave --where PLACE --how ACT [options of every program]
// misbehave inside threads|simulation PLACE ACT: calls run() in a main of its own
//
// These environment variables are read before the job is described:
// MISBEHAVE_EARLY: starts a program as soon as static objects are made, and prints its signals
// MISBEHAVE_LOCALE, MISBEHAVE_STREAMS: the locale of C, and that of C++
#include "actors/graph/run.hpp"
#include "actors/protocol/worker/stage.hpp"
#include "tests/misbehave/acts.hpp"
#include "troupe/own_actors.hpp"
#include "troupe/troupe.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <locale>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace misbehave {

namespace {

constexpr std::size_t elements = 64;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct settings {
  std::string where = "nowhere";
  std::string how = "nothing";
  std::uint64_t after = 20; ///< Calls of a place in a process that behave.
  std::uint64_t samples = 2000;
  double load_seconds = 0; ///< Time that a trainer's constructor takes.
};
settings chosen; // A server function has no other way to it.

/// Places that are called for each batch, which misbehave after some calls; others do at once.
const std::vector<std::string> often{"trainer", "loss",        "push",    "stage",
                                     "keeper",  "keeper-read", "function"};
const std::vector<std::string> seldom{"nowhere",     "describe",  "describe-child", "trainer-make",
                                      "trainer-end", "evaluator", "evaluator-make", "keeper-make",
                                      "keeper-save", "actor",     "actor-make",     "actor-stop",
                                      "take",        "port-make"};

std::vector<std::string> places() {
  auto all = seldom;
  all.insert(all.end(), often.begin(), often.end());
  return all;
}

/// Misbehaves if this is the place. Returns true if the caller is to give a NaN.
bool at(std::string_view place) {
  static std::atomic<std::uint64_t> calls{0};
  if (place != chosen.where)
    return false;
  const bool is_often = std::ranges::find(often, place) != often.end();
  return (!is_often || ++calls > chosen.after) && act(chosen.how);
}

class counting_trainer final : public troupe::trainer {
public:
  counting_trainer() {
    std::this_thread::sleep_for(std::chrono::duration<double>{chosen.load_seconds});
    at("trainer-make");
  }
  ~counting_trainer() override { at("trainer-end"); }

  double gradient(const troupe::batch&, troupe::const_tensors,
                  troupe::mutable_tensors gradients) override {
    std::ranges::fill(gradients[0], -1.0f);
    if (at("trainer"))
      gradients[0][0] = nan;
    return at("loss") ? nan : 0.0;
  }
};

/// Sends numbers to the trainers that count.
class number_sender final : public troupe::own_actor {
public:
  number_sender() { at("actor-make"); }

  void tick(troupe::time_point) override {
    at("actor");
    for (std::uint32_t to = 0; to < sent.peers(); ++to)
      if (sent.send({1, {}}, to))
        where().notes.count("sent");
  }
  void stop() override { at("actor-stop"); }

  troupe::out<std::uint32_t> sent{"sent"};
};

/// A trainer with a port.
class taking_trainer final : public troupe::trainer {
public:
  taking_trainer() {
    at("port-make");
    came.take = [](troupe::parcel<std::uint32_t>&&) { at("take"); };
  }

  double gradient(const troupe::batch& work, troupe::const_tensors values,
                  troupe::mutable_tensors gradients) override {
    return counting_.gradient(work, values, gradients);
  }

  troupe::in<std::uint32_t> came{"came"};

private:
  counting_trainer counting_;
};

class sum_evaluator final : public troupe::evaluator {
public:
  explicit sum_evaluator(std::uint64_t batches) : batches_(batches) { at("evaluator-make"); }

  troupe::evaluation evaluate(troupe::const_tensors sums) override {
    const bool is_nan = at("evaluator");
    const auto right =
      std::ranges::count(sums[0], static_cast<float>(batches_)); // Exact below 2^24.
    return {.loss = is_nan ? nan : static_cast<double>(elements) - static_cast<double>(right),
            .accuracy = right == elements ? 1.0 : 0.0,
            .note = fmt::format("batches: {} of {}", sums[0][0], batches_)};
  }

private:
  std::uint64_t batches_;
};

class bad_stage final : public troupe::pass_through {
public:
  void outgoing(troupe::request& what, troupe::stage_effects&) override {
    if (!what.push || !at("stage"))
      return;
    auto& [where, values] = what.push->pieces.at(0);
    const std::shared_ptr<float[]> own{new float[where.count]};
    std::fill_n(own.get(), where.count, nan);
    values = {own, own.get()};
  }
};

class sum_keeper final : public troupe::keeper {
public:
  sum_keeper() { at("keeper-make"); }

  void apply(const troupe::update& what, const troupe::node_notes&) override {
    for (std::size_t i = 0; i < elements; ++i)
      sums_[i] -= what.gradients[0][i];
    if (at("keeper"))
      sums_[0] = nan;
  }
  void read(const troupe::query&, troupe::mutable_tensors values) override {
    std::ranges::copy(sums_, values[0].begin());
    if (at("keeper-read"))
      values[0][0] = nan;
  }
  std::vector<std::byte> save() const override {
    const auto bytes = std::as_bytes(std::span{sums_});
    at("keeper-save");
    return {bytes.begin(), bytes.end()};
  }
  void load(std::span<const std::byte> saved) override {
    std::memcpy(sums_.data(), saved.data(), std::min(saved.size(), elements * sizeof(float)));
  }

private:
  std::vector<float> sums_ = std::vector<float>(elements);
};

/// The probes of a function make 32 steps in each process; the steps of the job count from there.
bool add(const troupe::step_info& info, std::span<float> weights, std::span<float>,
         std::span<const float> gradient) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] -= gradient[i];
  if (info.step > 32 && at("function"))
    weights[0] = nan;
  return true;
}

troupe::any_store store_of(const troupe::run_options& options) {
  const troupe::table_spec sums{.name = "sums", .shape = {elements}};
  if (chosen.where.starts_with("keeper"))
    return troupe::own_store{.tables = {sums},
                             .make = std::make_unique<sum_keeper>,
                             .checkpoints = options.servers.checkpoints};
  auto store = options.store({sums});
  auto& optimizer = store.tables().front().optimizer;
  optimizer = {.learning_rate = 1.0f};
  if (chosen.where == "function")
    optimizer = {.kind = troupe::optimizer_kind::user, .learning_rate = 1.0f, .function = "add"};
  return store;
}

troupe::graph describe(const troupe::run_options& options) {
  troupe::graph g;
  auto store = store_of(options);
  if (at("describe"))
    store.tables().front().optimizer.learning_rate = nan;
  auto sums = g.add("sums", std::move(store));
  const bool has_actors =
    chosen.where.starts_with("actor") || chosen.where == "take" || chosen.where == "port-make";
  auto counters =
    g.add("counters", has_actors
                        ? options.workers_of(chosen.samples, std::make_unique<taking_trainer>)
                        : options.workers_of(chosen.samples, std::make_unique<counting_trainer>));
  if (has_actors)
    g.join(g.add("senders", troupe::actors<number_sender>{}), &number_sender::sent, counters,
           &taking_trainer::came);
  troupe::stage_list path;
  if (chosen.where == "push")
    path.push_back(
      troupe::map_push("push", [](const troupe::push_info&, troupe::mutable_tensors gradient) {
        if (at("push"))
          gradient[0][0] = nan;
      }));
  if (chosen.where == "stage")
    path.push_back(troupe::own_stage("stage", {}, std::make_unique<bad_stage>));
  counters.into(path, options.stages(), sums);
  const auto batches =
    options.epochs * ((chosen.samples + options.batch_samples - 1) / options.batch_samples);
  g.add("check", troupe::evaluate{[=] { return std::make_unique<sum_evaluator>(batches); }})
    .into(sums);
  return g;
}

troupe::run_options defaults() {
  troupe::run_options options;
  options.workers.count = 2;
  options.batch_samples = 1;
  options.epochs = 2;
  return options;
}

/// Runs the graph inside this main, as a test of a user does.
int run_inside(const std::string& mode) {
  troupe::settings how{.name = "misbehave", .options = defaults()};
  how.options.asked_mode =
    mode == "threads" ? troupe::run_mode::threads : troupe::run_mode::simulation;
  how.functions = {{"add", {add, 0}}};
  const auto done = troupe::run(describe(how.options), how);
  if (!done) {
    fmt::print(stderr, "misbehave: {}\n", done.error().text);
    return 1;
  }
  fmt::print("test accuracy {:.4f}\n", done->last->accuracy.value());
  return 0;
}

int run_program(int argc, char** argv) {
  troupe::program program{"misbehave", "Runs user code that misbehaves.", defaults()};
  program.option("--where", chosen.where, "The place of the code", places());
  program.option("--how", chosen.how, "The act of the code there", acts());
  program.option("--after", chosen.after, "Calls of this place that behave");
  program.option("--loads", chosen.load_seconds, "Seconds that a trainer's constructor takes", 0,
                 100);
  program.option("--samples", chosen.samples, "Samples of an epoch", 1, 1'000'000'000);
  program.function("add", {add, 0});
  const bool is_child = std::find(argv, argv + argc, std::string_view{"--child"}) != argv + argc;
  return program.run(argc, argv, [&](const troupe::run_options& options) {
    if (is_child)
      at("describe-child");
    return describe(options);
  });
}

/// Has a child before main().
const std::string early = std::getenv("MISBEHAVE_EARLY") ? signals_of_a_child() : "";

/// Returns false if there is no such locale.
bool set_locales() {
  if (const char* const name = std::getenv("MISBEHAVE_LOCALE"))
    if (std::setlocale(LC_ALL, name) == nullptr)
      return false;
  if (const char* const name = std::getenv("MISBEHAVE_STREAMS"))
    std::locale::global(std::locale{name});
  return true;
}

} // namespace

int main_of(int argc, char** argv) {
  if (!early.empty())
    fmt::print(stderr, "{}\n", early);
  if (!set_locales())
    return 77;
  const std::span words{argv, static_cast<std::size_t>(argc)};
  if (words.size() != 5 || words[1] != std::string_view{"inside"})
    return run_program(argc, argv);
  chosen.where = words[3];
  chosen.how = words[4];
  return run_inside(words[2]);
}

} // namespace misbehave

int main(int argc, char** argv) { return misbehave::main_of(argc, argv); }
