#include "actors/graph/launch/process_backend.hpp"

#include "actors/detached.hpp"
#include "actors/graph/launch/actor_backend.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/processes/child_processes.hpp"
#include "actors/graph/run_failed.hpp"
#include "actors/graph/worker_groups.hpp"
#include "actors/roles/links/process_links.hpp"
#include "serialization/wire.hpp"
#include "storage/etcd_store.hpp"

#include "caf/event_based_actor.hpp"

#include <cassert>
#include <utility>

namespace troupe {

namespace {

/// Returns the observer of this host. Launchers of a job have different numbers.
member_id observer_here(const run_options& options) {
  auto made = new_observer();
  if (options.join)
    made.index = 1 + static_cast<std::uint32_t>(made.incarnation.value % 1'000'000);
  return made;
}

class process_backend final : public actor_backend {
public:
  explicit process_backend(const backend_setup& setup)
      : actor_backend(setup.what, 1), options_(setup.what.options),
        certificates_(required(load_certificates(options_))),
        children_({.command = setup.command, .run_directory = options_.run_directory}) {
    if (options_.join)
      setup.tell({.text = "connecting to " + to_string(*options_.join) + " ..."});
    auto place = required(choose_place(setup.what, setup.tell));
    cluster_ = std::move(place.cluster);
    listener_ = place.listener;
    required(check_addresses(certificates_, setup.what, cluster_));
    required(write_cluster_file(options_.run_directory, cluster_));
    begin();
  }

  ~process_backend() override {
    children_.kill_all();
    leave();
  }

  void describe(session_options& into) const override {
    actor_backend::describe(into);
    into.coordinator = {to_string(cluster_.coordinator), !options_.join && !options_.etcd};
    into.kills = options_.kills;
    const auto add = [&](const process_name& who, const std::string& node,
                         const supervision& on_death, std::vector<std::uint32_t> workers = {}) {
      into.processes.push_back({who, node, on_death, std::move(workers)});
    };
    if (!options_.join) {
      into.standbys = options_.standbys;
      into.added_server =
        process_plan{{role::server, 0}, what_.store_name, options_.servers.on_death};
      for (std::uint32_t i = 0; i <= options_.standbys; ++i)
        add({role::coordinator, i}, "", {});
    }
    for (std::uint32_t i = 0; i < options_.servers.count; ++i)
      into.servers_elsewhere.insert(i);
    for (const auto& who : processes_here(options_))
      switch (who.role) {
      case role::server:
        into.servers_elsewhere.erase(who.index);
        add(who, what_.store_name, options_.servers.on_death);
        break;
      case role::worker: {
        std::vector<std::uint32_t> workers;
        for (const auto& each : members_of(options_, {who.role, who.index, {}}))
          workers.push_back(each.index);
        add(who, what_.workers_name, options_.workers.on_death, std::move(workers));
        break;
      }
      case role::actor: {
        const auto& node = node_of_actor(what_, who.index);
        add(who, node.name, node.what.on_death);
        break;
      }
      case role::coordinator:
      case role::observer: assert(false); // No node has them.
      }
  }

  result<process_started> start(process_name who) override {
    return children_.start(who, who.role == role::coordinator ? listener_ : -1);
  }

  news tick() override {
    news fresh{children_.tick(), evaluations_.take()};
    if (options_.etcd)
      for (const auto& each : fresh.events)
        if (const auto* const end = std::get_if<process_ended>(&each))
          mark_dead(*end);
    return fresh;
  }

  void kill(process_name who) override { children_.kill(who); }
  void end() override { children_.kill_all(); }

private:
  void begin() {
    links_.emplace(system_,
                   hello{.version = wire::protocol_version,
                         .job = fingerprint(what_.job),
                         .secret = cluster_.secret,
                         .from = self_,
                         .probes = probes_of(what_.job, what_.functions)},
                   nullptr,
                   transport_options{.arena_bytes = arena_bytes_of(what_.job),
                                     .tls = certificates_[role::observer]});
    auto connect =
      links_->to_coordinator(cluster_.coordinator, [mailbox = mailbox_](const failure& why) {
        mailbox->publish({{}, 0, true, why, 0});
      });
    const auto router = spawn_router(system_, what_.job, links_->to_servers());
    observe(self_, {router, router}, std::move(connect), !options_.join);
  }

  /// Ends the lease of a dead coordinator in etcd, so that a standby need not wait for it. Runs on
  /// a separate thread, as etcd may be slow. If it fails, the lease runs out by itself.
  void mark_dead(const process_ended& end) {
    const bool is_clean = end.how.how == process_end::kind::exited && end.how.number == 0;
    if (end.who.role != role::coordinator || is_clean)
      return;
    spawn_detached(system_, [etcd = etcd_of(options_, cluster_.members.checkpoints),
                             who = name_in_etcd(cluster_.coordinator, end.who, end.how.pid)] {
      (void)storage::etcd_store::mark_dead(etcd, who);
    });
  }

  const run_options& options_;
  certificates certificates_;
  child_processes children_;
  cluster_file cluster_;
  int listener_ = -1; ///< The coordinator's socket; -1: another host has it.
  member_id self_ = observer_here(options_);
  std::optional<process_links> links_;
};

} // namespace

std::unique_ptr<backend> make_process_backend(const backend_setup& setup) {
  return std::make_unique<process_backend>(setup);
}

} // namespace troupe
