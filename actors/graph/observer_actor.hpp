// The launcher's member of the cluster: says which processes died, hears how the job stands.
#pragma once

#include "actors/kv.hpp"
#include "actors/store/router_actor.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe {

/// Where the observer actor and the launcher's main thread meet. Thread-safe.
class observer_board {
public:
  struct news {
    observer_orders orders;
    std::uint64_t term = 0;
    bool stop = false;
    std::string failed;
    std::uint64_t sequence = 0; ///< Of these orders, within the term.
  };

  /// The newest orders; nullopt before the first.
  std::optional<news> latest() const;
  void publish(news what);

  /// What the next reports say.
  void update(const std::function<void(observer_report&)>& change);
  observer_report report() const;

private:
  mutable std::mutex mutex_;
  std::optional<news> latest_;
  observer_report report_;
};

/// A member. It reports the board's observer_report at once when it is sent `tick_atom`, else every
/// report_interval, and tells `values` of each new view.
using observer_handle = member::extend<caf::reacts_to<tick_atom>>;

observer_handle spawn_observer(caf::actor_system& system, member_id self, std::uint64_t job,
                               std::shared_ptr<observer_board> board, router_handle values,
                               coordinator_connector connect);

} // namespace troupe
