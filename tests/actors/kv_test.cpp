#include "actors/kv.hpp"

#include "caf/sec.hpp"

#include "doctest/doctest.h"

namespace kv_test {

using namespace troupe;

TEST_CASE("a_failure_survives_its_way_through_caf") {
  const failure why{errc::damaged, "a bit flipped"};
  CHECK(from_caf(to_caf(why)) == why);
  CHECK(from_caf(caf::make_error(caf::sec::request_timeout)).code == errc::timed_out);
  CHECK(from_caf(caf::make_error(caf::sec::runtime_error)).code == errc::peer_lost);
}

TEST_CASE("a_member_ends_with_an_error_where_its_desired_state_names_one") {
  desired_state what;
  what.stop = true;
  CHECK_FALSE(reason_to_end(what));
  what.failed = failure{errc::job_failed, "worker 1 is already running elsewhere"};
  CHECK(from_caf(reason_to_end(what)) == failure{errc::fenced, what.failed->text});
  what.failed->text.clear();
  CHECK(from_caf(reason_to_end(what)) == failure{errc::fenced, ""});
}

} // namespace kv_test
