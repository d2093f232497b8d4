// Lets a command from outside observe a running job and send it the user's wishes.
#pragma once

#include "actors/graph/launch/cluster_file.hpp"
#include "actors/roles/observer/observer_mailbox.hpp"
#include "actors/transport/streams/tls_context.hpp"

#include <memory>
#include <optional>

namespace troupe {

/// An observer of the job, which may come and leave at any time. It looks for the coordinator as
/// long as it exists.
class job_client {
public:
  /// `tls`: null without encryption.
  job_client(const cluster_file& cluster, std::shared_ptr<const tls_context> tls);
  ~job_client();
  job_client(const job_client&) = delete;
  job_client& operator=(const job_client&) = delete;

  /// Returns the latest news; nullopt: no coordinator has answered yet. If a coordinator turned
  /// this observer away, the news say `stop`.
  std::optional<job_update> latest() const;
  /// Requests a resize, again and again until the next call.
  void request_resize(const resize& what);

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace troupe
