// A running job as a command sees it that comes from outside: how it stands, and what the user
// wishes it to be.
#pragma once

#include "actors/graph/launch/cluster_file.hpp"
#include "actors/roles/observer/observer_mailbox.hpp"
#include "actors/transport/streams/tls_context.hpp"

#include <memory>
#include <optional>

namespace troupe {

/// An observer of the job; it may come and leave at will. Looks for the coordinator for as long as
/// it exists.
class job_client {
public:
  /// `tls`: null without encryption.
  job_client(const cluster_file& cluster, std::shared_ptr<const tls_context> tls);
  ~job_client();
  job_client(const job_client&) = delete;
  job_client& operator=(const job_client&) = delete;

  /// nullopt: no coordinator has answered yet. One that turned the visitor away says `stop`.
  std::optional<job_update> latest() const;
  /// Said again and again until it is another one.
  void request_resize(const resize& what);

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace troupe
