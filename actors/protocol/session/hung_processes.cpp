#include "actors/protocol/session/hung_processes.hpp"

#include "actors/protocol/mutation.hpp"

namespace troupe {

std::vector<process_name>
hung_processes::find(const std::map<process_name, incarnation_id>& running,
                     const std::vector<member_status>& members, time_point now) {
  std::set<member_id> present;
  for (const auto& status : members)
    present.insert(status.member);
  std::set<member_id> were_members;
  std::map<member_id, time_point> given_up_since;
  std::vector<process_name> hung;
  for (const auto& [name, incarnation] : running) {
    const member_id who{name.role, name.index, incarnation};
    if (present.contains(who)) {
      were_members.insert(who);
    } else if (were_members_.contains(who)) {
      const auto known = given_up_since_.find(who);
      const auto since = known == given_up_since_.end() ? now : known->second;
      if (mutated(mutation::hung_left_alone))
        continue;
      if (now - since > patience || mutated(mutation::killed_at_once)) {
        hung.push_back(name);
      } else {
        were_members.insert(who);
        given_up_since[who] = since;
      }
    }
  }
  were_members_.swap(were_members); // Drops processes that ended or were named.
  given_up_since_.swap(given_up_since);
  return hung;
}

} // namespace troupe
