#include "examples/02_async_sgd/shared_devices.hpp"

#include "fmt/core.h"

#include <cstdio>
#include <string>
#include <utility>

using troupe::device_group;
using troupe::device_platform;
using troupe::device_sum_options;
using troupe::result;

namespace async_sgd {

namespace {

void tell(const std::string& line) { fmt::print(stderr, "{}\n", line); }

} // namespace

shared_devices::shared_devices(std::vector<troupe::device_place> places,
                               std::uint32_t workers_per_process)
    : places_(std::move(places)), workers_per_process_(workers_per_process),
      machine_({.devices = workers_per_process}),
      cuda_{std::make_shared<device_group>(
        troupe::open_cuda,
        device_sum_options{.nccl = [] { return troupe::nccl_api::load(); }, .tell = tell})},
      emulated_{std::make_shared<device_group>(
        [machine = machine_]() -> result<std::unique_ptr<device_platform>> {
          return std::unique_ptr<device_platform>{machine.open()};
        },
        device_sum_options{.tell = tell})} {}

troupe::device_place shared_devices::place_of(std::uint32_t worker) const {
  auto place = places_[worker % places_.size()];
  if (place.kind == troupe::device_kind::emulated)
    place.device = worker % workers_per_process_;
  return place;
}

result<std::shared_ptr<device_platform>> shared_devices::open(troupe::device_kind kind) const {
  if (kind == troupe::device_kind::emulated)
    return std::shared_ptr<device_platform>{machine_.open()};
  auto opened = troupe::open_cuda();
  if (!opened)
    return opened.error();
  return std::shared_ptr<device_platform>{*std::move(opened)};
}

} // namespace async_sgd
