// The same training without the framework: one thread, one loop, the same model, data, batches and
// optimiser kernel. What async_sgd loses against it is what distribution costs.
#include "actors/tables/block_store.hpp"
#include "actors/training/sampler.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "examples/02_async_sgd/blas_choice.hpp"
#include "examples/02_async_sgd/data/dataset.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/random.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/optimizer.hpp"

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace async_sgd;

namespace {

struct options {
  std::string data = "digits";
  data_options reading;
  std::string model = "mlp:256";
  std::uint32_t batch = 64;
  std::uint64_t epochs = 10;
  float lr = 0.1f;
  std::string optimizer = "sgd";
  std::uint64_t seed = 1; ///< Seed of initial values and order of samples.
  bool json = false;      ///< Print one JSON object at the end instead of a line for each pass.
};

void declare(CLI::App& app, options& chosen) {
  app.option_defaults()->always_capture_default();
  app.add_option("--data", chosen.data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  app.add_option("--label", chosen.reading.label,
                 "csv: the label's column, its name or its number from 1; default: the last");
  app.add_flag("--zero-based", chosen.reading.zero_based,
               "libsvm: indices count from 0, not from 1");
  app.add_option("--model", chosen.model, "softmax, or mlp:WIDTH,... of the hidden layers");
  app.add_option("--batch", chosen.batch, "Samples of one batch")->check(CLI::Range(1u, 1u << 20));
  app.add_option("--epochs", chosen.epochs, "Passes over the training data")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}));
  app.add_option("--lr", chosen.lr, "Learning rate")->check(CLI::Range(1e-6f, 1e6f));
  app.add_option("--optimizer", chosen.optimizer, troupe::optimizer_choices);
  app.add_option("--seed", chosen.seed, "Seed of initial values and of the order of samples");
  app.add_flag("--json", chosen.json, "Print one JSON object at the end instead of lines");
}

/// Values, gradient and optimiser state of one table.
struct table {
  table(const troupe::table_spec& spec, splitmix64& random)
      : optimizer(spec.optimizer), values(spec.size()), gradient(spec.size()) {
    state.resize(spec.size() * troupe::kernels::state_per_weight(optimizer.kind));
    if (spec.init.kind == troupe::initializer_kind::uniform)
      for (float& x : values)
        x = spec.init.scale * random.symmetric();
  }

  /// Takes step `number`, from 1. Returns false if the gradient is not finite.
  bool update(std::uint64_t number) {
    return troupe::kernels::optimizer_step(values, state, values, state, gradient,
                                           troupe::options_of(optimizer, number));
  }

  troupe::optimizer_spec optimizer;
  std::vector<float> values, gradient, state;
};

struct epoch_result {
  double seconds = 0.0; ///< Time of training, without the evaluation behind it.
  double loss = 0.0;    ///< Mean over the pass.
  troupe::evaluation test;
};

void print_line(std::uint64_t epoch, const epoch_result& result, std::uint64_t samples) {
  std::printf("pass %2llu  %9.0f samples/s  train loss %.4f  test loss %.4f  accuracy %.4f",
              static_cast<unsigned long long>(epoch), static_cast<double>(samples) / result.seconds,
              result.loss, result.test.loss, *result.test.accuracy);
  if (result.test.auc)
    std::printf("  auc %.4f", *result.test.auc);
  std::printf("\n");
  std::fflush(stdout);
}

void print_json(const options& chosen, const std::vector<epoch_result>& epochs,
                std::uint64_t samples, double load_seconds) {
  nlohmann::ordered_json report{{"program", "plain_loop"}, {"data", chosen.data},
                                {"model", chosen.model},   {"batch", chosen.batch},
                                {"lr", chosen.lr},         {"optimizer", chosen.optimizer},
                                {"seed", chosen.seed},     {"load_seconds", load_seconds}};
  double seconds = 0.0;
  for (const epoch_result& epoch : epochs) {
    seconds += epoch.seconds;
    nlohmann::ordered_json line{{"seconds", epoch.seconds},
                                {"train_loss", epoch.loss},
                                {"test_loss", epoch.test.loss},
                                {"accuracy", *epoch.test.accuracy}};
    if (epoch.test.auc)
      line["auc"] = *epoch.test.auc;
    report["passes"].push_back(std::move(line));
  }
  report["samples_per_second"] = static_cast<double>(samples * epochs.size()) / seconds;
  std::printf("%s\n", report.dump().c_str());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

troupe::job_spec job_of(const options& chosen, const dataset& data, const model& shape) {
  troupe::job_spec job;
  job.name = "plain_loop";
  job.seed = chosen.seed;
  job.samples = data.train.labels.size();
  job.batch_samples = chosen.batch;
  job.epochs = chosen.epochs;
  job.tables = shape.tables();
  for (auto& table : job.tables)
    table.optimizer = {.kind = required(troupe::parse_optimizer(chosen.optimizer)),
                       .learning_rate = chosen.lr};
  return job;
}

void train(const options& chosen) {
  const auto load_start = std::chrono::steady_clock::now();
  const auto data =
    std::make_shared<const dataset>(required(load_dataset(chosen.data, chosen.reading)));
  const double load_seconds = seconds_since(load_start);
  for (const std::string& line : data->remarks)
    std::fprintf(stderr, "%s\n", troupe::printable(line).c_str());
  const auto shape = required(parse_model(chosen.model, *data));
  const auto job = job_of(chosen, *data, shape);

  splitmix64 random(job.seed);
  std::vector<table> tables;
  for (const auto& spec : job.tables)
    tables.emplace_back(spec, random);
  std::vector<std::span<const float>> parameters;
  std::vector<std::span<float>> gradients;
  for (table& t : tables) {
    parameters.emplace_back(t.values);
    gradients.emplace_back(t.gradient);
  }

  const auto trainer = make_trainer(shape, data);
  const auto evaluator = make_evaluator(shape, data);
  troupe::sampler sampler(job);
  std::vector<epoch_result> epochs;
  const troupe::kernels::flush_denormals guard; // A worker does the same for its trainer.
  for (std::uint64_t epoch = 0; epoch < job.epochs; ++epoch) {
    epoch_result result;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < job.batches_per_epoch(); ++i) {
      const std::uint64_t number = epoch * job.batches_per_epoch() + i;
      const auto work = sampler.at({number});
      const double loss = trainer->gradient(work, parameters, gradients);
      result.loss += loss * static_cast<double>(work.samples.size());
      for (table& t : tables)
        if (!t.update(number + 1))
          throw std::runtime_error{"training diverged in batch " + std::to_string(number)
                                   + ": use a smaller --lr"};
    }
    result.seconds = seconds_since(start);
    result.loss /= static_cast<double>(job.samples);
    result.test = evaluator->evaluate(parameters);
    epochs.push_back(result);
    if (!chosen.json)
      print_line(epoch + 1, result, job.samples);
  }
  if (chosen.json)
    print_json(chosen, epochs, job.samples, load_seconds);
}

} // namespace

int main(int argc, char** argv) {
  choose_blas_kernels(argv);
  options chosen;
  CLI::App app{"The same training without the framework: one thread, one loop.", "plain_loop"};
  declare(app, chosen);
  CLI11_PARSE(app, argc, argv);
  try {
    train(chosen);
  } catch (...) {
    std::fprintf(stderr, "plain_loop: %s\n", troupe::printable(troupe::exception_text()).c_str());
    return 1;
  }
  return 0;
}
