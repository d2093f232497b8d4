#include "actors/member_port.hpp"

#include "caf/actor_cast.hpp"
#include "caf/send.hpp"

#include <sys/resource.h>

namespace troupe {

void member_port::open(caf::local_actor* self, const member_id& id, std::uint64_t job,
                       const coordinator_connector& connect) {
  self_ = self;
  id_ = id;
  job_ = job;
  coordinator_ = connect(caf::actor_cast<member>(self));
}

void member_port::send(decltype(report::body) what) {
  const auto me = caf::actor_cast<member>(self_);
  caf::send_as(me, coordinator_, report{id_, job_, ++sequence_, peak_rss_bytes(), std::move(what)},
               me);
  sent_at_ = now_of(*self_);
}

bool member_port::due() const { return now_of(*self_) - sent_at_ >= report_interval; }

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace troupe
