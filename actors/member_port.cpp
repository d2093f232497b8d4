#include "actors/member_port.hpp"

#include "base/system/process_memory.hpp"

#include "caf/actor_cast.hpp"
#include "caf/send.hpp"

namespace troupe {

void member_port::open(caf::local_actor* self, const member_id& id, std::uint64_t job,
                       const coordinator_connector& connect, std::string address) {
  self_ = self;
  id_ = id;
  job_ = job;
  address_ = std::move(address);
  coordinator_ = connect(caf::actor_cast<member_handle>(self));
}

void member_port::send(decltype(status_message::body) what) {
  const auto me = caf::actor_cast<member_handle>(self_);
  caf::send_as(me, coordinator_,
               status_message{id_, job_, ++sequence_, peak_rss_bytes(), std::move(what), address_},
               me);
  sent_at_ = now_of(*self_);
}

bool member_port::due() const { return now_of(*self_) - sent_at_ >= interval_; }

} // namespace troupe
