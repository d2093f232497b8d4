// Learns a contextual bandit: players see a flower, name its kind, and are paid if they are right.
// They pull the newest policy, and send their rounds over a channel to the learners.
#include "examples/12_bandit/flowers.hpp"
#include "troupe/own_actors.hpp"
#include "troupe/troupe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using bandit::features, bandit::kinds;
using flower_ptr = std::shared_ptr<const bandit::flowers>;

/// One round, a parcel: the number of a flower, the kind that the player named, and its reward.
struct round {
  std::uint32_t flower, named;
  float reward;
};

/// Returns the probability of a reward for each kind, by the policy f32[kinds, features].
std::array<float, kinds> values_of(std::span<const float> policy,
                                   const std::array<float, features>& seen) {
  std::array<float, kinds> values{};
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    float sum = 0;
    for (std::size_t i = 0; i < features; ++i)
      sum += policy[kind * features + i] * seen[i];
    values[kind] = 1 / (1 + std::exp(-sum));
  }
  return values;
}

std::uint32_t best_of(const std::array<float, kinds>& values) {
  return static_cast<std::uint32_t>(std::ranges::max_element(values) - values.begin());
}

/// Names flowers by the newest policy, explores less with time, and tells the learners.
struct player final : troupe::own_actor {
  explicit player(flower_ptr all) : flowers(std::move(all)) {}

  void start() override {
    random.seed(where().seed);
    model.take = [this](troupe::const_tensors values) {
      policy.assign(values[0].begin(), values[0].end());
      explored = 200 / (200 + values[1][0]);
      model.ask();
    };
    model.ask();
  }

  /// Plays 100 rounds. A round is dropped if its learner is lost or has no room for it.
  void tick(troupe::time_point) override {
    for (std::uint32_t i = 0; i < 100 && !policy.empty(); ++i) {
      const auto one = play();
      if (!seen.send({one}, i % seen.peers()))
        continue;
      where().notes.count("rounds");
      where().notes.count("paid", one.reward > 0 ? 1 : 0);
    }
  }

  round play() {
    const auto flower = static_cast<std::uint32_t>(random() % flowers->size());
    const bool explores = static_cast<float>(random() % 1000) < 1000 * explored;
    const auto named = explores ? static_cast<std::uint32_t>(random() % kinds)
                                : best_of(values_of(policy, (*flowers)[flower].seen));
    return {flower, named, named == (*flowers)[flower].kind ? 1.0f : 0.0f};
  }

  troupe::out<round> seen{"seen"};
  troupe::pulls model{"model"};
  flower_ptr flowers;
  std::vector<float> policy; ///< Empty before the first values come.
  float explored = 1;        ///< Share of rounds that name a kind at random.
  std::mt19937_64 random;
};

/// Fits the policy to rounds that it remembers: logistic regression of each kind's reward.
struct learner final : troupe::trainer {
  explicit learner(flower_ptr all) : flowers(std::move(all)) {
    came.take = [this](troupe::parcel<round>&& parcel) { remember(parcel.head); };
  }

  void remember(const round& one) {
    memory.push_back(one);
    if (memory.size() > 2000)
      memory.pop_front();
    ++fresh;
  }

  double gradient(const troupe::batch& work, troupe::const_tensors values,
                  troupe::mutable_tensors gradients) override {
    if (fresh == 0 && came.may_wait()) // In virtual time a trainer never waits.
      if (const auto parcel = came.next(std::chrono::seconds{1}))
        remember(parcel->head);
    gradients[1][0] = static_cast<float>(-std::exchange(fresh, 0)); // Adds to the rounds played.
    std::ranges::fill(gradients[0], 0.0f);
    if (memory.empty())
      return 0;
    std::mt19937_64 random{work.seed};
    const auto count = static_cast<float>(work.samples.size());
    double loss = 0;
    for (std::size_t i = 0; i < work.samples.size(); ++i) {
      const auto& one = memory[random() % memory.size()];
      const auto& seen = (*flowers)[one.flower].seen;
      const float error = values_of(values[0], seen)[one.named] - one.reward;
      loss += error * error / count;
      for (std::size_t j = 0; j < features; ++j)
        gradients[0][one.named * features + j] += error * seen[j] / count;
    }
    return loss;
  }

  troupe::in<round> came{"came"};
  flower_ptr flowers;
  std::deque<round> memory;
  int fresh = 0; ///< Rounds that came since the last batch.
};

/// Plays each flower once, without exploring.
struct judge final : troupe::evaluator {
  explicit judge(flower_ptr all) : flowers(std::move(all)) {}

  troupe::evaluation evaluate(troupe::const_tensors policy) override {
    double right = 0;
    for (const auto& flower : *flowers)
      right += best_of(values_of(policy[0], flower.seen)) == flower.kind ? 1 : 0;
    const double share = right / static_cast<double>(flowers->size());
    return {.loss = 1 - share, .accuracy = share};
  }

  flower_ptr flowers;
};

} // namespace

int main(int argc, char** argv) {
  std::string data = "drawn";
  std::uint64_t player_count = 4;
  troupe::run_options defaults;
  defaults.workers.count = 2;
  defaults.optimizer = {.kind = troupe::optimizer_kind::adagrad, .learning_rate = 0.3f};
  troupe::program program{"bandit", "Learns from rewards alone.", defaults};
  program.option("--data", data, "drawn, or iris:FILE");
  program.option("--players", player_count, "Players", 1, 64);

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto flowers = bandit::load_flowers(data);
    const auto count = static_cast<std::uint32_t>(player_count);
    troupe::graph g;
    if (const auto file = bandit::file_of(data); !file.empty())
      g.reads(file);
    auto store = options.store(
      {{.name = "policy", .shape = {kinds, features}}, {.name = "played", .shape = {1}}});
    store.tables()[1].optimizer = {.learning_rate = 1}; // A sum.
    auto model = g.add("model", std::move(store));
    const auto make_learner = [=] { return std::make_unique<learner>(flowers); };
    auto learners = g.add("learners", options.workers_of(20'000, make_learner));
    learners.into(options.stages(), model);
    const auto make_player = [=] { return std::make_unique<player>(flowers); };
    auto players = g.add("players", troupe::actors<player>{.count = count, .make = make_player});
    players.into(model);
    g.join(players, &player::seen, learners, &learner::came, troupe::join_shape::spread, 16);
    g.add("test", troupe::evaluate{[=] { return std::make_unique<judge>(flowers); }}).into(model);
    return g;
  });
}
