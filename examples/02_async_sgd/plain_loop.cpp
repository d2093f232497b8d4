// The same training without the framework: one thread, one loop, the same model, data, batches and
// optimiser kernel. What async_sgd loses against it is what distribution costs.
#include "actors/training/sampler.hpp"
#include "examples/02_async_sgd/blas_choice.hpp"
#include "examples/02_async_sgd/dataset.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/random.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/optimizer.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using namespace async_sgd;

namespace {

constexpr const char* usage =
  "usage: plain_loop [options]\n"
  "  --data TEXT       digits | mnist:DIR | libsvm:TRAIN,TEST | csv:TRAIN,TEST   (digits)\n"
  "  --model TEXT      softmax | mlp:256,128                                     (mlp:256)\n"
  "  --batch N         samples of a batch                                        (64)\n"
  "  --epochs N        passes through the training data                          (10)\n"
  "  --lr X            learning rate                                             (0.1)\n"
  "  --optimizer TEXT  sgd | momentum | adagrad | adam                           (sgd)\n"
  "  --seed N          of initial values and order of samples                    (1)\n"
  "  --json            prints one JSON object at the end instead of lines\n";

struct options {
  std::string data = "digits";
  std::string model = "mlp:256";
  std::uint32_t batch = 64;  ///< 1 or more.
  std::uint64_t epochs = 10; ///< 1 or more.
  float lr = 0.1f;           ///< > 0.
  std::string optimizer = "sgd";
  std::uint64_t seed = 1;
  bool json = false;
};

int fail(const std::string& text) {
  std::fprintf(stderr, "plain_loop: %s\n", text.c_str());
  return 1;
}

template <class Number>
bool parse(const char* text, Number& number, Number least) {
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc{} && stop == end && number >= least;
}

/// False where an argument is unknown or its value cannot be used; `bad` is then that argument.
bool parse(int argc, char** argv, options& out, std::string& bad) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = bad = argv[i];
    if (name == "--json") {
      out.json = true;
      continue;
    }
    if (++i == argc)
      return false;
    const char* value = argv[i];
    bool good = true;
    if (name == "--data")
      out.data = value;
    else if (name == "--model")
      out.model = value;
    else if (name == "--optimizer")
      out.optimizer = value;
    else if (name == "--batch")
      good = parse(value, out.batch, 1u);
    else if (name == "--epochs")
      good = parse(value, out.epochs, std::uint64_t{1});
    else if (name == "--lr")
      good = parse(value, out.lr, 1e-9f);
    else if (name == "--seed")
      good = parse(value, out.seed, std::uint64_t{0});
    else
      good = false;
    if (!good)
      return false;
  }
  return true;
}

/// Values, gradient and optimiser state of one table.
struct table {
  table(const troupe::table_spec& spec, splitmix64& random)
      : values(spec.size()), gradient(spec.size()) {
    if (spec.init.kind == troupe::initializer_kind::uniform)
      for (float& x : values)
        x = spec.init.scale * random.symmetric();
    step.kind = static_cast<troupe::kernels::optimizer>(spec.optimizer.kind);
    step.rate = spec.optimizer.learning_rate;
    step.momentum = spec.optimizer.momentum;
    step.beta2 = spec.optimizer.beta2;
    step.epsilon = spec.optimizer.epsilon;
    state.resize(values.size() * troupe::kernels::state_per_weight(step.kind));
  }

  bool update(std::uint64_t number) {
    step.step = number;
    return troupe::kernels::optimizer_step(values, state, values, state, gradient, step);
  }

  std::vector<float> values, gradient, state;
  troupe::kernels::step_options step;
};

struct pass_result {
  double seconds = 0.0; ///< Of training, without the evaluation behind it.
  double loss = 0.0;    ///< Mean over the pass.
  troupe::evaluation test;
};

void print_line(std::uint64_t pass, const pass_result& result, std::uint64_t samples) {
  std::printf("pass %2llu  %9.0f samples/s  train loss %.4f  test loss %.4f  accuracy %.4f",
              static_cast<unsigned long long>(pass), static_cast<double>(samples) / result.seconds,
              result.loss, result.test.loss, result.test.accuracy);
  if (result.test.auc)
    std::printf("  auc %.4f", *result.test.auc);
  std::printf("\n");
  std::fflush(stdout);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + '"';
}

void print_json(const options& chosen, const std::vector<pass_result>& passes,
                std::uint64_t samples, double load_seconds) {
  double seconds = 0.0;
  for (const auto& pass : passes)
    seconds += pass.seconds;
  std::printf(
    "{\"program\": \"plain_loop\", \"data\": %s, \"model\": %s, \"batch\": %u, \"lr\": %g, "
    "\"optimizer\": %s, \"seed\": %llu, \"load_seconds\": %.4f, "
    "\"samples_per_second\": %.0f, \"passes\": [",
    quoted(chosen.data).c_str(), quoted(chosen.model).c_str(), chosen.batch,
    static_cast<double>(chosen.lr), quoted(chosen.optimizer).c_str(),
    static_cast<unsigned long long>(chosen.seed), load_seconds,
    static_cast<double>(samples * passes.size()) / seconds);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const auto& pass = passes[i];
    std::printf("%s{\"seconds\": %.4f, \"train_loss\": %.6f, \"test_loss\": %.6f, "
                "\"accuracy\": %.6f",
                i ? ", " : "", pass.seconds, pass.loss, pass.test.loss, pass.test.accuracy);
    if (pass.test.auc)
      std::printf(", \"auc\": %.6f", *pass.test.auc);
    std::printf("}");
  }
  std::printf("]}\n");
}

} // namespace

int main(int argc, char** argv) {
  choose_blas_kernels(argv);
  options chosen;
  std::string bad;
  if (!parse(argc, argv, chosen, bad)) {
    if (bad != "--help")
      std::fprintf(stderr, "plain_loop: cannot use option %s\n", bad.c_str());
    std::fputs(usage, bad == "--help" ? stdout : stderr);
    return bad == "--help" ? 0 : 1;
  }
  const auto optimizer = troupe::parse_optimizer(chosen.optimizer);
  if (!optimizer)
    return fail(optimizer.error().text);
  using clock = std::chrono::steady_clock;
  const auto since = [](clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
  };
  const auto load_start = clock::now();
  auto loaded = load_dataset(chosen.data);
  if (!loaded)
    return fail(loaded.error().text);
  const auto data = std::make_shared<const dataset>(*std::move(loaded));
  const double load_seconds = since(load_start);
  const auto shape = parse_model(chosen.model, *data);
  if (!shape)
    return fail(shape.error().text);

  troupe::job_spec job;
  job.name = "plain_loop";
  job.seed = chosen.seed;
  job.samples = data->train.labels.size();
  job.batch_samples = chosen.batch;
  job.passes = chosen.epochs;
  job.tables = shape->tables({}, {.kind = *optimizer, .learning_rate = chosen.lr});
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

  const auto trainer = make_trainer(*shape, data);
  const auto evaluator = make_evaluator(*shape, data);
  troupe::sampler sampler(job);
  std::vector<pass_result> passes;
  const troupe::kernels::flush_denormals guard; // As a worker does for its trainer.
  for (std::uint64_t pass = 0; pass < job.passes; ++pass) {
    pass_result result;
    const auto start = clock::now();
    for (std::uint64_t i = 0; i < job.batches_per_pass(); ++i) {
      const std::uint64_t number = pass * job.batches_per_pass() + i;
      const auto work = sampler.at({number});
      const double loss = trainer->gradient(work, parameters, gradients);
      result.loss += loss * static_cast<double>(work.samples.size());
      for (table& t : tables)
        if (!t.update(number + 1))
          return fail("training diverged in batch " + std::to_string(number));
    }
    result.seconds = since(start);
    result.loss /= static_cast<double>(job.samples);
    result.test = evaluator->evaluate(parameters);
    passes.push_back(result);
    if (!chosen.json)
      print_line(pass + 1, result, job.samples);
  }
  if (chosen.json)
    print_json(chosen, passes, job.samples, load_seconds);
  return 0;
}
