// Trains by asynchronous SGD on a cluster of processes: servers hold the parameters, workers
// compute gradients.
#include "examples/02_async_sgd/blas_choice.hpp"
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/device_trainer.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>

int main(int argc, char** argv) {
  async_sgd::choose_blas_kernels(argv);
  std::string data = "digits";
  std::string shape = "mlp:256";
  troupe::program program{"async_sgd", "Trains a classifier on a cluster that outlives kills."};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "softmax, or mlp:WIDTH,... of the hidden layers");
  async_sgd::data_options reading;
  program.option("--label", reading.label,
                 "csv: the label's column, its name or its number from 1; default: the last");
  program.flag("--zero-based", reading.zero_based, "libsvm: indices count from 0, not from 1");
  bool sparse = false;
  program.flag("--sparse", sparse,
               "Keep the first layer's weights as rows; workers ask for those they touch");
  std::string device = "cpu";
  program.option(
    "--device", device,
    "Devices of the workers: cpu, auto, cuda:all, cuda:0,1, emulated (a GPU emulated), "
    "or some of them in turn: cuda:0+cpu");

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    auto samples =
      std::make_shared<const async_sgd::dataset>(required(async_sgd::load_dataset(data, reading)));
    const auto model = required(async_sgd::parse_model(shape, *samples, sparse));
    const auto devices = std::make_shared<const async_sgd::shared_devices>(
      async_sgd::required(choose_places(device, model, options)), options.workers.per_process);
    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto store = g.add("model", options.store(model.tables()));
    auto learners =
      g.add("learners", options.workers_of(samples->train.labels.size(), [=](auto worker) {
        return make_trainer_at(devices->place_of(worker), *devices, model, samples);
      }));
    learners.into(options.stages(), store);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(store);
    return g;
  });
}
