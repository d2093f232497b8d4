// Copies of a replica's state for others, and from the tail.
#include "actors/roles/server/replica_runner.hpp"

#include "serialization/payload.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <utility>

namespace troupe {

void replica_runner::run(replica_send_effect& effect, host_effects&) {
  context_->send(effect.to, {host_.shard(), context_->options.self, std::move(effect.what)});
}

void replica_runner::receive(const replica_message& what) {
  std::visit([&](const auto& x) { take(what.from, x); }, what.what);
}

void replica_runner::take(const member_id& from, const entry_message& what) {
  const bool fits = values_ && std::ranges::all_of(what.entry.pushes, [&](const auto& push) {
                      return static_cast<bool>(values_->check(*push));
                    });
  if (fits)
    decide([&](host_effects& effects) { host_.receive(from, what, now(), effects); });
}

// -- to a joiner --

void replica_runner::run(send_copy_effect& effect, host_effects&) {
  if (effect.fresh) {
    const auto& state = *effect.fresh;
    const copy_part like{
      .config = state.config, .index = state.index, .image = {}, .clock_max = state.clock_max};
    auto held = effect.what.held;
    std::ranges::sort(held);
    outgoing_ = cut_into_parts(like, values_->pin(state.partitions), held);
  }
  if (effect.what.part < outgoing_.size())
    context_->send(effect.to, {host_.shard(), context_->options.self, outgoing_[effect.what.part]});
}

void replica_runner::run(end_copy_effect&, host_effects&) { outgoing_.clear(); }

// -- from the tail --

void replica_runner::run(ask_copy_effect& effect, host_effects&) {
  if (!incoming_ || incoming_->config() != effect.config) {
    std::vector<partition_image> own;
    if (incoming_)
      own = std::move(*incoming_).give_up();
    else if (values_)
      own = values_->pin(host_.state()->partitions());
    else
      own = std::exchange(own_past_, {});
    incoming_.emplace(effect.config, std::move(own));
  }
  incoming_->ask_again();
  ask_for_copy(effect.from);
}

void replica_runner::ask_for_copy(const member_id& from) {
  for (auto& request : incoming_->ask())
    context_->send(from, {host_.shard(), context_->options.self, std::move(request)});
}

void replica_runner::take(const member_id& from, const copy_part& what) {
  if (host_.is_broken() || !incoming_ || !incoming_->add(what))
    return;
  bytes_received_ += payload_bytes(what);
  host_.copy_advanced(now());
  if (incoming_->complete())
    install(from);
  else
    ask_for_copy(from);
}

void replica_runner::install(const member_id& from) {
  const auto copy = *std::exchange(incoming_, std::nullopt);
  auto images = copy.images();
  if (!images)
    return host_.copy_failed();
  std::uint64_t whole = 0;
  for (const auto& each : *images)
    whole += content_bytes(each);
  auto read = table_store::restored(host_.desired().job, *images, context_->pool, functions());
  log(log_level::info, fmt::format("was sent {:.2f} of {:.2f} MB by server {}",
                                   1e-6 * static_cast<double>(copy.bytes()),
                                   1e-6 * static_cast<double>(whole), from.index));
  decide([&](host_effects& effects) {
    if (!read)
      return host_.copy_failed();
    const auto& first = copy.first();
    loaded_ = *std::move(read);
    host_.copied({first.config, first.index, first.clock_max, applied_of(*images)}, now(), effects);
    copy_images_ = *std::move(images);
  });
}

} // namespace troupe
