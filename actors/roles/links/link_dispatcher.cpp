#include "actors/roles/links/link_dispatcher.hpp"

#include "actors/protocol/process_name.hpp"

#include "caf/send.hpp"

namespace troupe::detail {

namespace {

/// Most turns of actors in one round of events; more would keep other links waiting.
constexpr std::size_t turns_per_round_max = 4096;
/// Time after which a peer that cannot be reached is named in a notice.
constexpr std::chrono::seconds reach_patience{3};

bool is_control(const message& what) {
  return std::holds_alternative<status_message>(what)
         || std::holds_alternative<desired_state>(what);
}

} // namespace

link_dispatcher::link_dispatcher(caf::actor_system& system, hello self, acceptor accept,
                                 log_sink log, notice_sink waits, transport_options options)
    : accept_(std::move(accept)), log_(std::move(log)), waits_(std::move(waits)),
      unreached_(reach_patience), executor_(system, turns_per_round_max) {
  link_events events;
  events.opened = [this](link_id link, const hello& peer, const std::string&) {
    tell([&] {
      const std::lock_guard lock{mutex_};
      return unreached_.opened(link);
    }());
    auto owner = owner_of(link);
    if (!owner) {
      owner = accept_(link, peer);
      if (!owner) {
        transport_->close(link);
        return;
      }
      const std::lock_guard lock{mutex_};
      owners_.emplace(link, *owner);
    }
    write_log(log_level::debug, "link " + std::to_string(link.value) + " to "
                                  + to_string(process_of(peer.from)) + " is open");
    caf::anon_send(*owner, opened_atom_v, link, peer);
  };
  events.received = [this](link_id link, message what) {
    const auto owner = owner_of(link);
    if (owner && is_control(what))
      caf::anon_send(*owner, link, std::move(what));
    else if (owner)
      executor_.send(*owner, link, std::move(what));
  };
  events.settle = [this] { executor_.run(); };
  events.lost = [this](link_id link, const failure& why) {
    auto owner = owner_of(link);
    if (!owner)
      return;
    tell([&] {
      const std::lock_guard lock{mutex_};
      owners_.erase(link);
      return unreached_.lost(link, why, unreached_peers::clock::now());
    }());
    write_log(log_level::debug, "link " + std::to_string(link.value) + " ended: " + why.text);
    caf::anon_send(*owner, lost_atom_v, link, why);
  };
  events.rejected = [this](const std::string&, const failure& why) {
    write_log(log_level::warn, "turned away: " + why.text); // The text names the peer.
  };
  events.hampered = [this](const std::string& why) {
    write_log(why.empty() ? log_level::info : log_level::warn,
              why.empty() ? "accepts connections again" : why);
    if (waits_)
      waits_({log_level::warn, "accept", {}, why});
  };
  transport_ =
    std::make_unique<troupe::transport>(std::move(self), std::move(events), std::move(options));
}

void link_dispatcher::write_log(log_level level, const std::string& text) const {
  if (log_)
    log_(level, text);
}

void link_dispatcher::tell(const std::vector<reach_notice>& all) const {
  for (const auto& [address, text] : all) {
    if (!text.empty())
      write_log(log_level::warn, text);
    if (waits_)
      waits_({log_level::warn, "reach-" + address, {}, text});
  }
}

link_id link_dispatcher::connect(const endpoint& where, const std::string& name,
                                 const link_owner& owner) {
  // Holds the lock, so that `opened` cannot look for the owner before it is stored.
  const std::lock_guard lock{mutex_};
  const auto link = transport_->connect(where);
  owners_.emplace(link, owner);
  unreached_.connecting(link, to_string(where), name, unreached_peers::clock::now());
  return link;
}

std::optional<link_owner> link_dispatcher::owner_of(link_id link) {
  const std::lock_guard lock{mutex_};
  const auto found = owners_.find(link);
  if (found == owners_.end())
    return std::nullopt;
  return found->second;
}

} // namespace troupe::detail
