#include "serialization/role.hpp"

#include "doctest/doctest.h"
#include "serialization/messages.hpp"

#include <set>
#include <string>
#include <variant>

namespace troupe::test::role_test {

template <class... Bodies>
std::set<role> senders(const std::variant<Bodies...>& /*body*/) {
  return {Bodies::sender...};
}

template <class... Bodies>
std::set<role> receivers(const std::variant<Bodies...>& /*body*/) {
  return {Bodies::receiver...};
}

TEST_CASE("roles have names of their own") {
  std::set<std::string_view> names, processes;
  for (const auto& row : role_rows) {
    CHECK(names.insert(row.name).second);
    CHECK(processes.insert(row.process).second);
  }
  CHECK(names_of(std::vector<role>{}) == "no role");
  CHECK(names_of({role::server}) == "server");
  CHECK(names_of({role::server, role::observer}) == "server or observer");
}

TEST_CASE("a role that reports has a status and a desired state") {
  std::set<role> reporting;
  for (const auto& row : role_rows)
    if (row.members_max > 0)
      reporting.insert(row.role);
  CHECK(senders(status_message{}.body) == reporting);
  CHECK(receivers(desired_state{}.body) == reporting);
}

TEST_CASE("a role that reports reaches the coordinator") {
  for (const auto& row : role_rows) {
    CAPTURE(row.name);
    CHECK((row.members_max > 0) == traits_of(role::coordinator).is_reached_by(row.role));
  }
}

TEST_CASE("numbers of roles without processes of a launcher are refused") {
  CHECK(started_role(0) == role::coordinator);
  CHECK(started_role(static_cast<std::uint32_t>(role::worker)) == role::worker);
  CHECK(!started_role(static_cast<std::uint32_t>(role::observer)));
  CHECK(!started_role(static_cast<std::uint32_t>(role_rows.size())));
  CHECK(!started_role(0xffffffff));
}

TEST_CASE("a role with values has slots, and one that leads does not report") {
  for (const auto& row : role_rows) {
    CHECK((row.has_slots || !row.holds_values));
    CHECK((row.members_max == 0 || !row.leads_job));
  }
}

TEST_CASE("links are between roles of which one admits the other") {
  CHECK(may_have_link(role::worker, role::coordinator));
  CHECK(may_have_link(role::coordinator, role::worker));
  CHECK(may_have_link(role::server, role::server));
  CHECK(may_have_link(role::actor, role::actor));
  CHECK(may_have_link(role::worker, role::actor));
  CHECK(may_have_link(role::actor, role::server));
  CHECK(!may_have_link(role::observer, role::worker));
  CHECK(!may_have_link(role::observer, role::actor));
  CHECK(!may_have_link(role::observer, role::observer));
  CHECK(!may_have_link(role::coordinator, role::coordinator));
}

TEST_CASE("members are reached by roles that theirs admits, if it listens") {
  CHECK(traits_of(role::server).is_reached_by(role::server));
  CHECK(traits_of(role::server).is_reached_by(role::worker));
  CHECK(traits_of(role::coordinator).is_reached_by(role::observer));
  CHECK_FALSE(traits_of(role::server).is_reached_by(role::coordinator));
  for (const auto whom : {role::worker, role::actor}) {
    CHECK(traits_of(whom).is_reached_by(role::worker));
    CHECK(traits_of(whom).is_reached_by(role::actor));
    for (const auto other : {role::coordinator, role::observer})
      CHECK_FALSE(traits_of(whom).is_reached_by(other));
    CHECK(traits_of(role::server).is_reached_by(whom)); // It pulls.
  }
  CHECK(traits_of(role::worker).is_reached_by(role::server)); // The collector of a gossip job.
  CHECK_FALSE(traits_of(role::actor).is_reached_by(role::server));
  CHECK(traits_of(role::observer).listens == listening::never);
  for (const auto& row : role_rows)
    CHECK((row.listens == listening::never || row.admits != 0)); // No member listens in vain.
}

TEST_CASE("ids of servers and workers name their slots and their processes") {
  CHECK(member_of(server_id{3}, {7}) == member_id{role::server, 3, {7}});
  CHECK(member_of(worker_id{2}) == member_id{role::worker, 2, {}});
}

} // namespace troupe::test::role_test
