#include "actors/protocol/server/state_loader.hpp"

#include "actors/protocol/mutation.hpp"

#include <cassert>
#include <utility>

namespace troupe {

state_loader::state_loader(server_id self, bool has_checkpoints)
    : self_(self), has_checkpoints_(has_checkpoints) {}

void state_loader::begin(load_terms terms) {
  terms_ = std::move(terms);
  ++number_;
  stage_ = stage::nothing;
  held_.clear();
  recovered_ = false;
  failed_.reset();
  unreadable_ = 0;
}

/// Begins a chain whose servers have all ended with the local state of one of them, or with the
/// checkpoint if that state cannot be used.
void state_loader::load(host_effects& effects) {
  if (!terms_.is_durable || terms_.lost.config == config_id{})
    return load_checkpoint(effects);
  if (!terms_.keeps_states)
    return load_instead("no local state fits this start", effects);
  stage_ = stage::recalling;
  effects.push_back(recall_effect{number_, terms_.partitions});
}

void state_loader::recall_past(host_effects& effects) {
  stage_ = stage::recalling_past;
  effects.push_back(recall_effect{number_, terms_.partitions});
}

void state_loader::load_checkpoint(host_effects& effects) {
  const auto checkpoint = mutated(mutation::checkpoint_not_restored) ? 0 : terms_.base_checkpoint;
  if (checkpoint != 0 && !has_checkpoints_)
    return give_up({errc::io_failed, "there are no checkpoints to restore from"}, 0, effects);
  stage_ = stage::reading;
  effects.push_back(load_effect{number_, checkpoint, terms_.partitions});
}

void state_loader::load_instead(const std::string& why, host_effects& effects) {
  const auto checkpoint = terms_.base_checkpoint;
  effects.push_back(note_effect{
    log_level::warn,
    why + "; it begins with "
      + (checkpoint == 0 ? "initial values" : "checkpoint " + std::to_string(checkpoint))});
  load_checkpoint(effects);
}

bool state_loader::awaits(std::uint64_t load) const {
  return load == number_ || mutated(mutation::late_load_taken);
}

void state_loader::recalled(std::uint64_t load, const result<std::optional<recalled_state>>& found,
                            host_effects& effects) {
  if (!awaits(load))
    return;
  assert(stage_ == stage::recalling || stage_ == stage::recalling_past);
  const auto* kept =
    found && *found && (*found)->base.history == terms_.history ? &**found : nullptr;
  if (stage_ == stage::recalling_past) {
    stage_ = stage::nothing;
    if (kept != nullptr && kept->base.generation == terms_.generation)
      effects.push_back(keep_past_effect{});
    return;
  }
  if (!found)
    return load_instead(found.error().text, effects);
  if (kept == nullptr)
    return load_instead("no local state of this history", effects);
  if (!kept_all(terms_.lost, self_, kept->base) && !mutated(mutation::lost_not_compared))
    return load_instead("the local state lacks acknowledged updates", effects);
  assert(kept_all(terms_.lost, self_, kept->base));
  stage_ = stage::replaying;
  entries_ = kept->entries;
  effects.push_back(replay_effect{number_});
}

bool state_loader::loaded(std::uint64_t load, std::vector<shard_partition> held,
                          host_effects& effects) {
  if (!awaits(load))
    return false;
  assert(stage_ == stage::replaying || stage_ == stage::reading);
  if (stage_ == stage::replaying) {
    effects.push_back(note_effect{log_level::info, "recovered from its local state, "
                                                     + std::to_string(entries_)
                                                     + " entries of its log"});
    recovered_ = true;
  }
  stage_ = stage::loaded;
  held_ = std::move(held);
  return true;
}

void state_loader::failed(std::uint64_t load, const failure& why, host_effects& effects) {
  if (!awaits(load))
    return;
  assert(stage_ == stage::replaying || stage_ == stage::reading);
  const auto what = std::exchange(stage_, stage::nothing);
  if (what == stage::replaying)
    return load_instead(why.text, effects);
  const bool is_rotten =
    what == stage::reading && (why.code == errc::damaged || why.code == errc::io_failed);
  give_up(why, is_rotten ? terms_.base_checkpoint : 0, effects);
}

/// Reports that the generation cannot be begun; `bad_checkpoint`: because of that one, if not 0.
void state_loader::give_up(failure why, std::uint64_t bad_checkpoint, host_effects& effects) {
  stage_ = stage::nothing;
  assert(held_.empty());
  failed_ = std::move(why);
  unreadable_ = bad_checkpoint;
  effects.push_back(report_effect{});
}

std::vector<shard_partition> state_loader::take() {
  if (stage_ == stage::loaded)
    stage_ = stage::nothing;
  return std::exchange(held_, {});
}

} // namespace troupe
