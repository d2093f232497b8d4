#include "actors/tables/log_replay.hpp"

#include "actors/protocol/server/replica.hpp"

#include <algorithm>

namespace troupe {

namespace {

class log_player {
public:
  log_player(const job_spec& job, table_store& values, const std::vector<shard_partition>& held)
      : values_(values), state_(job, {}, held) {}

  result<void> play(const log_entry& entry) {
    auto header = header_of(entry);
    if (is_done(header))
      return {};
    for (const auto& push : entry.pushes)
      if (auto fits = values_.check(*push); !fits)
        return {errc::damaged, "a log has an entry of another job: " + fits.error().text};
    shard_effects effects;
    state_.append(std::move(header));
    state_.commit(effects);
    step(std::get<apply_effect>(effects.back()), entry);
    return {};
  }

  std::vector<shard_partition> held() const { return state_.partitions(); }

private:
  bool is_done(const entry_header& header) const {
    const auto partitions = state_.partitions();
    return std::ranges::all_of(partitions, [&](const shard_partition& partition) {
      return std::ranges::all_of(header.tables, [&](table_id table) {
        return std::ranges::all_of(header.steps, [&](const step_header& step) {
          return partition.applied[table.value].contains(step.batch);
        });
      });
    });
  }

  void step(const apply_effect& effect, const log_entry& entry) {
    std::vector<const push_request*> pushes;
    for (const auto& push : entry.pushes)
      pushes.push_back(push.get());
    shard_effects effects;
    if (auto done = values_.apply(effect, pushes); done)
      state_.applied(effects);
    else
      state_.discarded(done.error(), effects);
  }

  table_store& values_;
  shard state_;
};

} // namespace

result<replica_past> replay_log(const job_spec& job, const storage::local_state& kept,
                                const std::shared_ptr<buffer_pool>& pool,
                                const server_functions& functions) {
  auto values = table_store::restored(job, kept.images, pool, functions);
  if (!values)
    return values.error();
  log_player player{job, **values, applied_of(kept.images)};
  for (const auto& entry : kept.log)
    if (auto played = player.play(entry); !played)
      return played.error();
  return replica_past{*std::move(values), player.held()};
}

} // namespace troupe
