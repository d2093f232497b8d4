// The effects of the coordinator, which its shell carries out in their order.
#pragma once

#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

struct send_effect {
  troupe::desired_state desired_state;
};
/// Find the newest good checkpoint, then call checkpoint_found() or search_failed().
struct find_checkpoint_effect {
  std::vector<std::uint64_t> unreadable; ///< Pass these over: servers could not read them.
};
/// Commit this checkpoint (and apply retention), then call checkpoint_committed().
struct commit_checkpoint_effect {
  storage::manifest manifest;
};
/// Store this state before the later effects are carried out.
struct persist_effect {
  storage::coordinator_state state;
};
/// One line for the log and the display.
struct event_effect {
  job_event what;
};

using coordinator_effect = std::variant<send_effect, find_checkpoint_effect,
                                        commit_checkpoint_effect, persist_effect, event_effect>;
using coordinator_effects = std::vector<coordinator_effect>;

/// Keeps the newest events for the observers.
class event_journal {
public:
  void add(job_event what, coordinator_effects& effects) {
    newest_.push_back(what);
    if (newest_.size() > newest_max)
      newest_.pop_front();
    ++total_;
    effects.push_back(event_effect{std::move(what)});
  }

  const std::deque<job_event>& newest() const { return newest_; }
  /// Returns the number of events so far.
  std::uint64_t total() const { return total_; }

private:
  static constexpr std::size_t newest_max = 50;

  std::deque<job_event> newest_;
  std::uint64_t total_ = 0;
};

} // namespace troupe
