#include "cli/sim/world.hpp"

#include <algorithm>

namespace troupe::sim {

void assert_failed(const char* what, std::string_view file, int line, const char* function) {
  file.remove_prefix(file.rfind('/') + 1);
  throw violation("assert: " + std::string{what} + ", in " + function + "() at " + std::string{file}
                  + ":" + std::to_string(line));
}

/// Does not use the C library's functions: their last bit may differ between processors.
double world::intensity(double max) {
  const double x = std::uniform_real_distribution<>(0, 1)(random_);
  return no_faults_ || chance(0.3) ? 0.0 : max * x * x;
}

void world::at(time_point when, std::function<void()> what) {
  events_.push_back({when, ++order_, std::move(what)});
  std::push_heap(events_.begin(), events_.end());
}

bool world::step() {
  if (events_.empty())
    return false;
  std::pop_heap(events_.begin(), events_.end());
  const happening next = std::move(events_.back());
  events_.pop_back();
  now_ = next.at;
  ++events_happened_;
  hash_ = (hash_ ^ static_cast<std::uint64_t>(now_.count()) ^ next.order) * 0x100000001b3ull;
  next.happen();
  return true;
}

void world::note(const std::string& what) const {
  if (trace_)
    trace_(std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now_).count())
           + " us " + what);
}

const world::cut* world::cut_between(place from, place to) const {
  const auto found = cut_.find({from, to});
  return found != cut_.end() && now_ < found->second.until ? &found->second : nullptr;
}

void world::make_cut(place from, place to, cut what) {
  cut_[{from, to}] = what;
  if (chance(0.5))
    cut_[{to, from}] = what;
}

void world::post(place from, place to, std::function<void()> arrive) {
  auto begin = now_;
  if (const auto* found = cut_between(from, to)) {
    if (!found->holds)
      return;
    begin = found->until;
  }
  if (!quiet_ && chance(loss_)) {
    ++messages_lost_;
    return;
  }
  const int copies = !quiet_ && chance(repetition_) ? 2 : 1;
  messages_doubled_ += copies == 2 ? 1 : 0;
  for (int i = 0; i < copies; ++i) {
    auto when = begin + std::chrono::microseconds{pick(50, delay_us_max_)};
    if (quiet_ || !overtaking_) {
      auto& last = in_order_[{from, to}];
      when = last = std::max(when, last);
    }
    at(when, i + 1 < copies ? arrive : std::move(arrive));
  }
}

void world::post_quickly(place from, place to, double share, std::function<void()> arrive) {
  if (!quiet_ && chance(share))
    return post(from, to, std::move(arrive));
  auto begin = now_;
  if (const auto* found = cut_between(from, to)) {
    if (!found->holds)
      return;
    begin = found->until;
  }
  auto& last = on_link_[{from, to}];
  last = std::max(last, begin + std::chrono::microseconds{pick(50, 1500)});
  at(last, std::move(arrive));
}

} // namespace troupe::sim
