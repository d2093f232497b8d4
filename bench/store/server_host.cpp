#include "bench/store/server_host.hpp"

#include "bench/store/kv_requests.hpp"
#include "serialization/layout.hpp"

#include "caf/typed_event_based_actor.hpp"

#include <future>
#include <memory>

namespace troupe::bench {

namespace {

constexpr config_id config{1};

/// Returns the desired state of a server that is alone in the chain of its number.
desired_state desired_for(const job_spec& job, const member_id& server) {
  desired_server body;
  body.job = job;
  body.generation = {1};
  body.chains = {{{server.index}, {{config, {1}, {server}, {}}, 0, {}}}};
  body.shard_of = make_partition_map(job, job.servers, {});
  for (std::uint32_t i = 0; i < job.workers; ++i)
    body.workers.push_back({{i}, first_start(i), 0, true});
  return {server, 1, 1, false, {}, body};
}

} // namespace

server_handle spawn_serving(caf::actor_system& system, const job_spec& job, std::uint32_t index,
                            const std::string& address) {
  const auto identity = server_identity(index);
  const auto serves = std::make_shared<std::promise<void>>();
  const auto coordinator =
    system.spawn([=](coordinator_handle::pointer self) -> coordinator_handle::behavior_type {
      return {[=, told = false, known = false](const status_message& what,
                                               const member_handle& from) mutable {
        if (!std::exchange(told, true))
          self->send(from, desired_for(job, identity));
        const auto& chains = std::get<server_status>(what.body).chains;
        const bool ready = !chains.empty() && chains[0].status.config == config;
        if (ready && !std::exchange(known, true))
          serves->set_value();
      }};
    });
  auto server = spawn_server(system, {identity, fingerprint(job), address, {}},
                             [coordinator](const member_handle&) { return coordinator; }, {});
  serves->get_future().wait();
  return server;
}

member_id server_identity(std::uint32_t index) { return {role::server, index, {100 + index}}; }

} // namespace troupe::bench
