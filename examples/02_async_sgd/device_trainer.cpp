#include "examples/02_async_sgd/device_trainer.hpp"

#include "examples/02_async_sgd/device_network.hpp"
#include "examples/02_async_sgd/network.hpp"
#include "examples/02_async_sgd/required.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <cstdio>
#include <utility>

using troupe::device_place;
using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

class device_trainer final : public troupe::trainer {
public:
  device_trainer(device_network network, std::uint32_t device, device_state shared,
                 std::shared_ptr<const dataset> data)
      : network_(std::move(network)), device_(device), shared_(std::move(shared)),
        data_(std::move(data)) {}

  double gradient(const troupe::batch& work, troupe::const_tensors parameters,
                  troupe::mutable_tensors gradients) override {
    return required(network_.gradient(data_->train, work.samples, parameters, gradients,
                                      [&](std::size_t table) { work.ready(table); }));
  }

  std::optional<troupe::device_gradient>
  gradient_on_device(const troupe::batch& work, troupe::const_tensors parameters,
                     const troupe::value_identity& which) override {
    auto [gradient, count, squares, loss] = required(network_.gradient_on_device(
      data_->train, work.samples, parameters, {*shared_.parameters, which}));
    const std::span<const float> values{gradient.get(), count};
    return troupe::device_gradient{
      std::make_shared<const troupe::device_values>(
        troupe::device_values{shared_.group, device_, values, std::move(gradient)}),
      squares, loss};
  }

private:
  device_network network_;
  std::uint32_t device_;
  device_state shared_;
  std::shared_ptr<const dataset> data_;
};

/// Computes the first layer, which has sparse features, on the CPU, and the dense layers above it
/// on the device.
class split_trainer final : public troupe::trainer {
public:
  split_trainer(const model& shape, device_network dense, std::shared_ptr<const dataset> data)
      : data_(std::move(data)), first_(shape.widths, data_->train), dense_(std::move(dense)) {}

  void keys(const troupe::batch& work, troupe::key_lists touched) override {
    add_features(std::get<sparse_rows>(data_->train.rows), work.samples, touched[0]);
  }

  double gradient(const troupe::batch& work, troupe::const_tensors parameters,
                  troupe::mutable_tensors gradients) override {
    first_.use_rows(work.keys[0]);
    const auto outputs = first_.forward_first(work.samples, parameters);
    delta_.resize(outputs.size());
    const double loss = required(dense_.gradient_above(
      data_->train, work.samples, outputs, parameters.subspan(2), gradients.subspan(2), delta_));
    first_.backward_first(work.samples, delta_, gradients);
    return loss;
  }

private:
  std::shared_ptr<const dataset> data_;
  network first_;
  device_network dense_; ///< All layers but the first.
  std::vector<float> delta_;
};

result<std::vector<device_place>> find_places(const troupe::device_choice& choice,
                                              const std::string& text) {
  if (!choice.asks_for_cuda())
    return choice.places(0u);
  const auto cuda = troupe::open_cuda();
  auto places = choice.places(cuda ? result<std::uint32_t>{(*cuda)->devices()} : cuda.error());
  if (places && !cuda)
    fmt::print(stderr, "--device {}: {}; in its place workers compute on the CPU\n", text,
               cuda.error().text);
  return places;
}

} // namespace

result<std::vector<device_place>> choose_places(const std::string& text, const model& shape,
                                                const troupe::run_options& options) {
  const auto choice = troupe::device_choice::parse(text);
  if (!choice)
    return choice.error();
  if (choice->cpu_only())
    return std::vector<device_place>(1);
  if (shape.sparse && shape.layers() == 1)
    return {errc::invalid_argument, "--sparse --model softmax has no dense layer for a device: use "
                                    "--device cpu, or --model mlp:256"};
  if (options.record_directory || options.replay_directory)
    return {errc::invalid_argument,
            "a replay computes every gradient again on the CPU, so it has other bytes than one of "
            "--device "
              + text + ": use --device cpu"};
  const auto is_worker = [](const troupe::process_name& x) {
    return x.role == troupe::role::worker;
  };
  if (!options.here.empty() && std::ranges::none_of(options.here, is_worker))
    return std::vector<device_place>(1); // No worker of this host needs a device.
  auto places = find_places(*choice, text);
  const auto of_other_kind = [&](const device_place& x) { return x.kind != places->front().kind; };
  if (places && options.sync.traits().clock_updates && std::ranges::any_of(*places, of_other_kind))
    fmt::print(stderr,
               "--device {}: kinds of devices round differently, so where a lost worker's batch is "
               "done by another kind, a bsp run ends in other bytes\n",
               text);
  return places;
}

std::unique_ptr<troupe::trainer> make_trainer_at(const troupe::device_place& place,
                                                 const shared_devices& devices, const model& shape,
                                                 std::shared_ptr<const dataset> data) {
  if (place.kind == troupe::device_kind::cpu)
    return make_trainer(shape, std::move(data));
  const std::size_t first = shape.sparse ? 1 : 0; // The CPU computes a sparse first layer.
  auto network = required(device_network::make(required(devices.open(place.kind)), place.device,
                                               {shape.widths.begin() + first, shape.widths.end()}));
  if (shape.sparse)
    return std::make_unique<split_trainer>(shape, std::move(network), std::move(data));
  return std::make_unique<device_trainer>(std::move(network), place.device,
                                          devices.state_of(place.kind), std::move(data));
}

} // namespace async_sgd
