#include "actors/checkpointer.hpp"

#include "actors/detached.hpp"
#include "storage/checkpoint_reader.hpp"
#include "storage/checkpoint_writer.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

struct checkpointer_state {
  checkpointer_state() = default;

  caf::result<checkpoint_part> write(const storage::cut& what) {
    auto& writer = writers[what.shard];
    if (!writer) {
      auto opened = storage::checkpoint_writer::open(options.directory, options.server, what.shard);
      if (!opened)
        return to_caf(opened.error());
      writer = *std::move(opened);
    }
    auto part = writer->write(what);
    if (!part)
      return to_caf(part.error());
    return *std::move(part);
  }

  caf::result<std::shared_ptr<storage::local_state>>
  read_kept(shard_id shard, const job_spec& job,
            const std::vector<partition_id>& partitions) const {
    auto kept = storage::read_kept(options.directory, options.server, shard, job, partitions);
    if (!kept)
      return to_caf(kept.error());
    if (!*kept)
      return std::shared_ptr<storage::local_state>{};
    return std::make_shared<storage::local_state>(**std::move(kept));
  }

  caf::result<std::uint64_t> commit(const storage::manifest& what) {
    if (auto done = storage::commit(options.directory, what); !done)
      return to_caf(done.error());
    // An old checkpoint that cannot be removed costs space only; the next commit tries again.
    (void)storage::retain(options.directory, options.keep);
    return what.checkpoint;
  }

  caf::result<std::uint64_t> scrub() {
    const auto all = storage::committed(options.directory);
    if (!all)
      return to_caf(all.error());
    if (all->empty())
      return 0;
    const auto next = std::ranges::upper_bound(*all, scrubbed);
    scrubbed = next == all->end() ? all->front() : *next;
    if (const auto whole = storage::scrub(options.directory, scrubbed); !whole)
      return to_caf(whole.error());
    return scrubbed;
  }

  checkpointer_options options;
  std::uint64_t scrubbed = 0; ///< The checkpoint that was read again last.
  std::map<shard_id, std::unique_ptr<storage::checkpoint_writer>> writers;

  static inline const char* name = "checkpointer";
};

static_assert(!std::is_constructible_v<checkpointer_state, caf::event_based_actor*>);

template <class T>
caf::result<T> as_reply(result<T> outcome) {
  if (!outcome)
    return to_caf(outcome.error());
  return *std::move(outcome);
}

checkpointer::behavior_type
run_checkpointer(checkpointer::stateful_pointer<checkpointer_state> self,
                 checkpointer_options options) {
  self->state.options = std::move(options);
  auto& state = self->state;
  return {
    [&state](write_atom, const storage::cut& what) { return state.write(what); },
    [&state](read_atom, std::uint64_t number, const job_spec& job,
             const std::vector<partition_id>& partitions) {
      return as_reply(storage::read(state.options.directory, number, job, partitions));
    },
    [&state](read_atom, shard_id shard, const job_spec& job,
             const std::vector<partition_id>& partitions) {
      return state.read_kept(shard, job, partitions);
    },
    [&state](find_atom, const job_spec& job, const std::vector<std::uint64_t>& unreadable) {
      return as_reply(storage::newest_good(state.options.directory, job, unreadable));
    },
    [&state](commit_atom, const storage::manifest& what) { return state.commit(what); },
    [&state](scrub_atom) { return state.scrub(); },
  };
}

} // namespace

checkpointer spawn_checkpointer(caf::actor_system& system, checkpointer_options options) {
  return spawn_detached(system, run_checkpointer, std::move(options));
}

} // namespace troupe
