// Finds topics in documents (latent Dirichlet allocation) by stochastic inference: after Hoffman,
// Blei, Bach 2010, "Online learning for latent Dirichlet allocation". A worker computes the topics
// that its batch alone would give, and the servers blend them in. No built-in optimiser does that,
// so this program brings a server function.
#include "examples/02_async_sgd/required.hpp"
#include "examples/07_lda/topics.hpp"
#include "troupe/troupe.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace {

/// Blends: w' = (1 - rho) w + rho target, with rho = (tau + step)^-kappa. Parameters: tau, kappa.
bool blend(const troupe::step_info& info, std::span<float> weights, std::span<float>,
           std::span<const float> target) {
  const float tau = info.parameters[0], kappa = info.parameters[1];
  const float rho = std::pow(tau + static_cast<float>(info.step), -kappa);
  bool finite = true;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] += rho * (info.scale * target[i] - weights[i]);
    finite = finite && std::isfinite(weights[i]);
  }
  return finite;
}

} // namespace

int main(int argc, char** argv) {
  std::string data = "drawn";
  std::uint64_t topics = 20;
  double tau = 1, kappa = 0.7;
  troupe::program program{"lda", "Finds topics in documents."};
  program.option("--data", data, "drawn, or uci-bow:FILE");
  program.option("--topics", topics, "Topics", 1, 1000);
  program.option("--tau", tau, "Larger: shorter first steps", 0, 1e6);
  program.option("--kappa", kappa, "Larger: steps become shorter faster", 0.5, 1);
  program.function("blend/1", {blend});

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    if (options.workers.per_process > 1 && !options.sync.traits().clock_updates)
      throw std::invalid_argument{"--workers-per-process adds up targets, of which only bsp takes "
                                  "the mean: leave it out"};
    const auto all =
      std::make_shared<const lda::corpus>(async_sgd::required(lda::load_corpus(data)));
    const lda::topic_options how{.topics = static_cast<std::uint32_t>(topics)};
    troupe::graph g;
    if (!all->file.empty())
      g.reads(all->file);
    auto store = options.store({lda::topics_table(*all, how)});
    store.tables().front().optimizer = {
      .kind = troupe::optimizer_kind::user,
      .function = "blend/1",
      .parameters = {static_cast<float>(tau), static_cast<float>(kappa)}};
    auto model = g.add("topics", std::move(store));
    auto learners = g.add(
      "learners", options.workers_of(all->train.size(), [=] { return make_trainer(all, how); }));
    learners.into(options.stages(), model);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(all, how); }}).into(model);
    return g;
  });
}
