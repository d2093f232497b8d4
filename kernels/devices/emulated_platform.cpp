#include "kernels/devices/emulated_platform.hpp"

#include "base/splitmix64.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Counts the recordings of an event, and those of them that were reached.
struct emulated_event final : device_event {
  explicit emulated_event(std::uint32_t where) : device(where) {}
  std::uint32_t device;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  std::chrono::steady_clock::time_point time{}; ///< Time of the last one reached.
};

emulated_event* own(device_event* event) { return static_cast<emulated_event*>(event); }

constexpr std::size_t alignment = 256; // As in CUDA.

/// Work to do, or an event that must be reached before the following work.
struct operation {
  std::function<void()> work;
  const emulated_event* event = nullptr;
  std::uint64_t until = 0;

  bool ready() const { return !event || event->reached >= until; }
};

class queue final : public kernels::emulated_queue {
public:
  void push(std::function<void()> work) override { waiting.push_back({std::move(work)}); }
  std::deque<operation> waiting;
};

} // namespace

/// State that all platforms of a machine share: its memory and its devices.
class emulated_machine::memory {
public:
  explicit memory(const emulation_options& options) : options_(options), used_(options.devices) {}
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  ~memory() {
    for (const auto& [at, about] : blocks_)
      ::operator delete (at, std::align_val_t{alignment});
  }

  const emulation_options& options() const { return options_; }

  result<void> check(std::uint32_t device) const {
    const std::lock_guard guard{mutex_};
    return check_locked(device);
  }

  result<std::uint64_t> free_bytes(std::uint32_t device) const {
    const std::lock_guard guard{mutex_};
    if (auto there = check_locked(device); !there)
      return there.error();
    return options_.memory_bytes - used_[device];
  }

  /// Allocates on a device; nullopt: pinned memory.
  result<void*> allocate(std::optional<std::uint32_t> device, std::size_t bytes) {
    const std::lock_guard guard{mutex_};
    if (device) {
      if (auto there = check_locked(*device); !there)
        return there.error();
      const std::uint64_t free = options_.memory_bytes - used_[*device];
      if (bytes > free)
        return {errc::device_failed,
                fmt::format("device {} is out of memory: {} bytes asked for, {} of {} are free",
                            *device, bytes, free, options_.memory_bytes)};
      used_[*device] += bytes;
    }
    void* const at = ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{alignment});
    std::memset(at, 0xff, bytes); // NaNs expose reads of unwritten memory.
    blocks_[static_cast<std::byte*>(at)] = {device, bytes};
    return at;
  }

  void release(void* what) {
    const std::lock_guard guard{mutex_};
    const auto found = blocks_.find(static_cast<std::byte*>(what));
    assert(found != blocks_.end());
    if (found->second.device)
      used_[*found->second.device] -= found->second.bytes;
    blocks_.erase(found);
    ::operator delete (what, std::align_val_t{alignment});
  }

  bool has(const void* part, std::size_t bytes) const {
    const std::lock_guard guard{mutex_};
    return block_with(part, bytes) != nullptr;
  }

  /// Errors: memory that is neither of a device nor pinned, or of a lost device.
  result<void> count_copy(const void* to, const void* from, std::size_t bytes) {
    const std::lock_guard guard{mutex_};
    const block* const target = block_with(to, bytes);
    const block* const source = block_with(from, bytes);
    if (target == nullptr || source == nullptr)
      return {errc::device_failed,
              "a copy from or to memory that is neither of a device nor pinned"};
    for (const auto& device : {target->device, source->device})
      if (device)
        if (auto there = check_locked(*device); !there)
          return there;
    if (!source->device && target->device)
      copied_.to_devices += bytes;
    else if (source->device && !target->device)
      copied_.from_devices += bytes;
    else if (source->device != target->device)
      copied_.between_devices += bytes;
    return {};
  }

  copied_bytes copied() const {
    const std::lock_guard guard{mutex_};
    return copied_;
  }

  void lose(std::uint32_t device) {
    const std::lock_guard guard{mutex_};
    lost_.insert(device);
  }

private:
  struct block {
    std::optional<std::uint32_t> device; ///< Nullopt: pinned memory.
    std::size_t bytes;
  };

  result<void> check_locked(std::uint32_t device) const {
    if (device >= options_.devices)
      return {errc::device_failed,
              fmt::format("there is no device {}, only {}", device, options_.devices)};
    if (lost_.contains(device))
      return {errc::device_failed, fmt::format("device {} is lost", device)};
    return {};
  }

  const block* block_with(const void* part, std::size_t bytes) const {
    const auto* const at = static_cast<const std::byte*>(part);
    auto next = blocks_.upper_bound(const_cast<std::byte*>(at));
    if (next == blocks_.begin())
      return nullptr;
    --next;
    return at + bytes <= next->first + next->second.bytes ? &next->second : nullptr;
  }

  const emulation_options options_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> used_; ///< Used bytes of each device.
  std::map<std::byte*, block> blocks_;
  std::set<std::uint32_t> lost_;
  copied_bytes copied_;
};

namespace {

class emulation final : public emulated_platform {
public:
  explicit emulation(std::shared_ptr<emulated_machine::memory> memory)
      : memory_(std::move(memory)), random_(memory_->options().seed) {}

  std::uint32_t devices() const override { return memory_->options().devices; }
  bool emulated() const override { return true; }

  result<device_info> describe(std::uint32_t device) override {
    const auto free = memory_->free_bytes(device);
    if (!free)
      return free.error();
    return device_info{"emulated on the host", memory_->options().memory_bytes, *free};
  }

  result<void*> allocate(std::uint32_t device, std::size_t bytes) override {
    return memory_->allocate(device, bytes);
  }

  result<void*> allocate_pinned(std::size_t bytes) override { return memory_->allocate({}, bytes); }
  void release(std::uint32_t, void* memory) noexcept override { drop(memory); }
  void release_pinned(void* memory) noexcept override { drop(memory); }

  result<kernels::stream> make_stream(std::uint32_t device) override {
    if (auto there = memory_->check(device); !there)
      return there.error();
    queues_.push_back(std::make_unique<queue>());
    return kernels::stream{nullptr, queues_.back().get(), static_cast<int>(device)};
  }

  result<device_event*> make_event(std::uint32_t device) override {
    if (auto there = memory_->check(device); !there)
      return there.error();
    return new emulated_event{device};
  }

  void release(const kernels::stream& at) noexcept override {
    run_until([&] { return queue_of(at).waiting.empty(); });
    std::erase_if(queues_, [&](const auto& x) { return x.get() == at.emulated; });
  }

  void release(device_event* event) noexcept override {
    // Waiting work still refers to the event.
    run_until([&] { return own(event)->reached == own(event)->recorded; });
    for (const auto& x : queues_)
      run_until([&] {
        return std::ranges::none_of(x->waiting, [=](auto& op) { return op.event == event; });
      });
    delete own(event);
  }

  void copy(const kernels::stream& at, void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0 || !usable(at))
      return;
    if (note(memory_->count_copy(to, from, bytes)))
      at.emulated->push([=] { std::memcpy(to, from, bytes); });
  }

  void clear(const kernels::stream& at, void* memory, std::size_t bytes) override {
    if (bytes == 0 || !usable(at))
      return;
    if (!memory_->has(memory, bytes))
      return (void)note(
        {errc::device_failed, "a clear of memory that is neither of a device nor pinned"});
    at.emulated->push([=] { std::memset(memory, 0, bytes); });
  }

  void record(const kernels::stream& at, device_event* event) override {
    const std::uint64_t number = ++own(event)->recorded;
    at.emulated->push([=] {
      own(event)->reached = std::max(own(event)->reached, number);
      own(event)->time = std::chrono::steady_clock::now();
    });
  }

  void wait(const kernels::stream& at, device_event* event) override {
    queue_of(at).waiting.push_back({{}, own(event), own(event)->recorded});
  }

  result<void> synchronize(const kernels::stream& at) override {
    usable(at);
    run_until([&] { return queue_of(at).waiting.empty(); });
    return outcome();
  }

  result<void> synchronize(device_event* event) override {
    run_until([&] { return own(event)->reached == own(event)->recorded; });
    return outcome();
  }

  result<bool> done(device_event* event) override {
    step();
    if (auto all = outcome(); !all)
      return all.error();
    return own(event)->reached == own(event)->recorded;
  }

  void link_replicas(std::span<const std::uint32_t>) override {}

  double elapsed_ms(device_event* from, device_event* to) override {
    return std::chrono::duration<double, std::milli>(own(to)->time - own(from)->time).count();
  }

  void lose(std::uint32_t device) override { memory_->lose(device); }

private:
  static queue& queue_of(const kernels::stream& at) { return static_cast<queue&>(*at.emulated); }

  /// Keeps the first failure for the next wait. Returns whether `outcome` is a success.
  bool note(const result<void>& outcome) {
    if (!outcome && !failed_)
      failed_ = outcome.error();
    return static_cast<bool>(outcome);
  }

  bool usable(const kernels::stream& at) {
    return note(memory_->check(static_cast<std::uint32_t>(at.device)));
  }

  result<void> outcome() {
    if (!failed_)
      return {};
    return *std::exchange(failed_, std::nullopt);
  }

  void drop(void* memory) noexcept {
    // Frees after all work, as cudaFree does: some work may need the memory.
    run_until(
      [&] { return std::ranges::all_of(queues_, [](auto& x) { return x->waiting.empty(); }); });
    memory_->release(memory);
  }

  /// Does one operation of a stream drawn at random. Returns false if no operation is ready.
  bool step() {
    ready_.clear();
    for (const auto& x : queues_)
      if (!x->waiting.empty() && x->waiting.front().ready())
        ready_.push_back(x.get());
    if (ready_.empty())
      return false;
    auto& next = ready_[random_.next() % ready_.size()]->waiting;
    const auto work = std::move(next.front().work);
    next.pop_front();
    if (work)
      work();
    return true;
  }

  template <class Done>
  void run_until(Done done) {
    while (!done())
      if (!step())
        return (void)note({errc::device_failed, "streams wait for each other, and none goes on"});
  }

  std::shared_ptr<emulated_machine::memory> memory_;
  splitmix64 random_;
  std::vector<std::unique_ptr<queue>> queues_;
  std::vector<queue*> ready_; ///< Scratch of step().
  std::optional<failure> failed_;
};

} // namespace

emulated_machine::emulated_machine(const emulation_options& options)
    : memory_(std::make_shared<memory>(options)) {}

std::unique_ptr<emulated_platform> emulated_machine::open() const {
  return std::make_unique<emulation>(memory_);
}

copied_bytes emulated_machine::copied() const { return memory_->copied(); }

std::unique_ptr<emulated_platform> emulate_devices(const emulation_options& options) {
  return emulated_machine{options}.open();
}

} // namespace troupe
