#include "examples/03_count_batches/trainers.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "examples/02_async_sgd/shared_devices.hpp"
#include "kernels/devices/device_buffer_pool.hpp"
#include "kernels/devices/memory.hpp"

#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace count_batches {

namespace {

using async_sgd::required;

/// Computes on the host, and leaves the gradient on a device.
class device_trainer final : public troupe::trainer {
public:
  device_trainer(const schedule& all, std::shared_ptr<troupe::device_platform> on,
                 std::uint32_t device, std::shared_ptr<troupe::device_group> group)
      : inner_(make_trainer(all)), on_(std::move(on)), device_(device), group_(std::move(group)),
        stream_(required(troupe::make_stream(*on_, device))) {}

  double gradient(const troupe::batch& work, troupe::const_tensors parameters,
                  troupe::mutable_tensors gradients) override {
    return inner_->gradient(work, parameters, gradients);
  }

  std::optional<troupe::device_gradient>
  gradient_on_device(const troupe::batch& work, troupe::const_tensors parameters,
                     const troupe::value_identity&) override {
    const auto count = parameters[0].size();
    if (here_.size() != count) {
      here_ = required(troupe::make_pinned<float>(*on_, count));
      free_list_ = {on_, device_, count};
    }
    const std::span<float> gradient = here_.span();
    inner_->gradient(work, parameters, {&gradient, 1});
    double squares = 0;
    for (const float x : gradient)
      squares += static_cast<double>(x) * x;
    auto there = required(free_list_.take());
    on_->copy(stream_.get(), there.get(), gradient.data(), gradient.size_bytes());
    if (auto done = on_->synchronize(stream_.get()); !done)
      throw std::runtime_error{done.error().text};
    const std::span<const float> values{there.get(), count};
    return troupe::device_gradient{
      std::make_shared<const troupe::device_values>(
        troupe::device_values{group_, device_, values, std::move(there)}),
      squares, 0.0};
  }

private:
  std::unique_ptr<troupe::trainer> inner_;
  std::shared_ptr<troupe::device_platform> on_;
  std::uint32_t device_;
  std::shared_ptr<troupe::device_group> group_;
  troupe::owned_stream stream_;
  troupe::pinned_memory<float> here_;
  troupe::device_buffer_pool free_list_;
};

std::vector<troupe::device_place> places() {
  std::vector<troupe::device_place> all;
  if (auto cuda = troupe::open_cuda())
    for (std::uint32_t device = 0; device < (*cuda)->devices(); ++device)
      all.push_back({troupe::device_kind::cuda, device});
  if (all.empty())
    all.push_back({troupe::device_kind::emulated});
  return all;
}

} // namespace

troupe::trainer_maker device_trainers(const schedule& all, std::uint32_t workers_per_process) {
  auto devices = std::make_shared<async_sgd::shared_devices>(places(), workers_per_process);
  return [all, devices = std::move(devices)](std::uint32_t worker) {
    const auto place = devices->place_of(worker);
    return std::make_unique<device_trainer>(all, required(devices->open(place.kind)), place.device,
                                            devices->state_of(place.kind).group);
  };
}

} // namespace count_batches
