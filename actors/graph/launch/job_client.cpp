#include "actors/graph/launch/job_client.hpp"

#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/roles/observer/observer_actor.hpp"
#include "base/system/draw_random.hpp"
#include "serialization/wire.hpp"

#include "caf/actor_system.hpp"
#include "caf/send.hpp"

#include <utility>

namespace troupe {

namespace {

/// Returns an observer with any index but 0, which is the main launcher's.
member_id any_observer() {
  const auto incarnation = draw_random();
  return {role::observer, 1 + static_cast<std::uint32_t>(incarnation % 1'000'000), {incarnation}};
}

} // namespace

struct job_client::parts {
  parts(const cluster_file& cluster, std::shared_ptr<const tls_context> tls)
      : links(system,
              {wire::protocol_version, fingerprint(cluster.members.job), cluster.secret, self}, {},
              transport_options{.tls = std::move(tls)}) {
    const auto connect =
      links.to_coordinator(cluster.coordinator, [mailbox = mailbox](const failure& why) {
        mailbox->publish({{}, 0, true, why, 0});
      });
    observer = spawn_observer(system, self, fingerprint(cluster.members.job), mailbox, {}, connect);
  }

  ~parts() {
    caf::anon_send_exit(observer, caf::exit_reason::user_shutdown);
    system.await_actors_before_shutdown(false);
  }

  member_id self = any_observer();
  std::shared_ptr<observer_mailbox> mailbox = std::make_shared<observer_mailbox>();
  own_actor_system own_system = make_actor_system();
  caf::actor_system& system = *own_system.system;
  process_links links;
  observer_handle observer;
};

job_client::job_client(const cluster_file& cluster, std::shared_ptr<const tls_context> tls)
    : parts_(std::make_unique<parts>(cluster, std::move(tls))) {}

job_client::~job_client() = default;

std::optional<job_update> job_client::latest() const { return parts_->mailbox->latest(); }

void job_client::request_resize(const resize& what) {
  parts_->mailbox->update([&](observer_status& report) { report.resize = what; });
}

} // namespace troupe
