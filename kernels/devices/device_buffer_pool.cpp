#include "kernels/devices/device_buffer_pool.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

struct device_buffer_pool::stock {
  std::shared_ptr<device_platform> on; ///< First, because the memory returns to it.
  std::uint32_t device = 0;
  std::size_t count = 0;
  std::vector<device_memory<float>> all; ///< Used by the platform's thread.
  std::mutex mutex;                      ///< Guards `idle`.
  std::vector<float*> idle;
};

device_buffer_pool::device_buffer_pool(std::shared_ptr<device_platform> on, std::uint32_t device,
                                       std::size_t count)
    : stock_(std::make_shared<stock>()) {
  stock_->on = std::move(on);
  stock_->device = device;
  stock_->count = count;
}

result<std::shared_ptr<float>> device_buffer_pool::take() {
  const auto lend = [this](float* memory) {
    return std::shared_ptr<float>{memory, [from = stock_](float* back) {
                                    const std::lock_guard guard{from->mutex};
                                    from->idle.push_back(back);
                                  }};
  };
  {
    const std::lock_guard guard{stock_->mutex};
    if (!stock_->idle.empty()) {
      float* const memory = stock_->idle.back();
      stock_->idle.pop_back();
      return lend(memory);
    }
  }
  auto made = make_memory<float>(*stock_->on, stock_->device, stock_->count);
  if (!made)
    return made.error();
  stock_->all.push_back(*std::move(made));
  {
    const std::lock_guard guard{stock_->mutex};
    stock_->idle.reserve(stock_->all.size()); // So that returning an array cannot fail.
  }
  return lend(stock_->all.back().data());
}

} // namespace troupe
