#include "kernels/devices/nccl.hpp"

#include "base/shared_counter.hpp"
#include "kernels/devices/shared_library.hpp"

#include "fmt/core.h"

#include <cassert>
#include <chrono>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

// From NCCL's header nccl.h; part of its binary interface.
constexpr int nccl_float32 = 7, nccl_sum = 0, nccl_in_progress = 7;

/// Returns a stream as NCCL takes it. A stand-in for NCCL takes emulated streams.
CUstream_st* raw(const kernels::stream& at) {
  return at.emulated ? reinterpret_cast<CUstream_st*>(at.emulated) : at.cuda;
}

} // namespace

result<nccl_api> nccl_api::load(const std::string& path) {
  const auto library = path.empty() ? shared_library::open({"libnccl.so.2", "libnccl.so"})
                                    : shared_library::open({path});
  if (!library)
    return {errc::device_failed, "NCCL cannot be loaded: " + library.error().text};
  nccl_api api;
  const auto bind = [&](auto*& function, const char* name) {
    return library->bind(function, name);
  };
  for (const auto& bound :
       {bind(api.init_all, "ncclCommInitAll"), bind(api.abort, "ncclCommAbort"),
        bind(api.destroy, "ncclCommDestroy"), bind(api.all_reduce, "ncclAllReduce"),
        bind(api.group_start, "ncclGroupStart"), bind(api.group_end, "ncclGroupEnd"),
        bind(api.async_error, "ncclCommGetAsyncError"), bind(api.error_text, "ncclGetErrorString")})
    if (!bound)
      return bound.error();
  return api;
}

result<nccl_group> nccl_group::make(device_platform& on, const nccl_api& api,
                                    std::vector<std::uint32_t> devices,
                                    std::chrono::milliseconds patience) {
  nccl_group made{on, api, std::move(devices), patience};
  made.left_.resize(made.devices_.size());
  std::iota(made.left_.begin(), made.left_.end(), 0u);
  if (auto connected = made.connect(); !connected)
    return connected.error();
  return made;
}

nccl_group::nccl_group(nccl_group&& other) noexcept
    : on_(other.on_), api_(other.api_), devices_(std::move(other.devices_)),
      patience_(other.patience_), left_(std::move(other.left_)),
      streams_(std::move(other.streams_)), events_(std::move(other.events_)),
      communicators_(std::exchange(other.communicators_, {})) {}

nccl_group::~nccl_group() {
  for (auto* const one : communicators_)
    api_.destroy(one);
}

failure nccl_group::failed(int error, const char* what) const {
  return {errc::device_failed, fmt::format("NCCL failed: {} ({})", api_.error_text(error), what)};
}

result<void> nccl_group::connect() {
  std::vector<int> numbers;
  for (const std::uint32_t position : left_) {
    auto stream = make_stream(*on_, devices_[position]);
    if (!stream)
      return stream.error();
    auto event = make_event(*on_, devices_[position]);
    if (!event)
      return event.error();
    streams_.push_back(*std::move(stream));
    events_.push_back(*std::move(event));
    numbers.push_back(static_cast<int>(devices_[position]));
  }
  std::vector<ncclComm*> made(numbers.size());
  if (const int error = api_.init_all(made.data(), static_cast<int>(made.size()), numbers.data()))
    return failed(error, "ncclCommInitAll");
  communicators_ = std::move(made);
  return {};
}

void nccl_group::disconnect() {
  // `destroy` is not used: it waits for work that will never complete.
  for (auto* const one : communicators_)
    api_.abort(one);
  communicators_.clear();
  events_.clear();
  streams_.clear();
}

std::size_t nccl_group::drop_lost() {
  return std::erase_if(
    left_, [this](std::uint32_t position) { return !on_->describe(devices_[position]); });
}

result<void> nccl_group::await() {
  using namespace std::chrono;
  // Small sums are complete before the thread sleeps. For larger ones a delay of 50 us is
  // negligible, and the core is free for the thread that reads the next batch.
  constexpr auto spin = 200us, pause = 50us;
  const kernels::shared_counter clock; // Which nobody advances: waits for it are pauses.
  const auto begun = steady_clock::now();
  for (std::size_t i = 0; i < communicators_.size();) {
    int error = 0;
    // Check all each time: if one fails, the others may never complete.
    for (auto* const one : communicators_)
      if (api_.async_error(one, &error) || (error && error != nccl_in_progress))
        return failed(error, "while devices add up");
    const auto done = on_->done(events_[i].get());
    if (!done)
      return done.error();
    if (*done) {
      ++i;
      continue;
    }
    const auto waited = steady_clock::now() - begun;
    if (waited > patience_)
      return {errc::device_failed, fmt::format("NCCL is not done after {} ms", patience_.count())};
    if (waited > spin)
      clock.wait(1, {.spin = 0us}, pause);
  }
  return {};
}

result<void> nccl_group::attempt(std::span<const share> shares) {
  if (communicators_.empty())
    if (auto connected = connect(); !connected)
      return connected;
  int error = api_.group_start();
  for (std::size_t i = 0; i < left_.size() && !error; ++i) {
    const auto& x = shares[left_[i]];
    error = api_.all_reduce(x.in.data(), x.out.data(), x.in.size(), nccl_float32, nccl_sum,
                            communicators_[i], raw(streams_[i].get()));
  }
  const int ended = api_.group_end(); // Needed after an error too: the group is open.
  if (error || (ended && ended != nccl_in_progress))
    return failed(error ? error : ended, "ncclAllReduce");
  for (std::size_t i = 0; i < left_.size(); ++i)
    on_->record(streams_[i].get(), events_[i].get());
  return await();
}

result<void> nccl_group::all_reduce(std::span<const share> shares) {
  assert(shares.size() == devices_.size());
  bool again = true; // One retry with the same devices, for a transient error.
  for (;;) {
    auto done = attempt(shares);
    if (done)
      return done;
    disconnect();
    const std::size_t lost = drop_lost();
    if (left_.empty() || (lost == 0 && !std::exchange(again, false)))
      return done;
  }
}

} // namespace troupe
