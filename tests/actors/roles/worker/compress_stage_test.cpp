#include "actors/roles/worker/compress_stage.hpp"

#include "actors/roles/worker/stage_actor.hpp"

#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <string>

namespace compress_stage_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct fixture : actor_fixture {
  explicit fixture(compression how, encoding pulls = encoding::f32)
      : router(*this), coder(owned(spawn_stage(
                         system,
                         {.name = "codec",
                          .notes = std::make_shared<program_notes>(
                            [this](log_level, const std::string& line) { log.push_back(line); })},
                         make_compress_stage(job, {{how, how}, pulls}), router.handle()))) {
    router.on_push([](const push_request&) { return push_reply{1, false}; });
  }

  /// Returns a pull of the blocks that a router's pull reply has.
  static pull_request blocks_pull() {
    pull_request made;
    made.ranges = {{{0}, 0, 4096}, {{1}, 0, 3}};
    return made;
  }

  job_spec job = routed_job();
  std::vector<std::string> log;
  fake_kv router;
  kv coder;
};

} // namespace

TEST_CASE("a_compress_stage_packs_what_is_pushed") {
  fixture f{{encoding::onebit, 0}};
  const auto pushing = f.push(f.coder, whole_push(f.job));
  CHECK(pushing->reply == push_reply{1, false});
  REQUIRE(f.router.pushes().size() == 1);
  CHECK(f.router.pushes()[0].pieces.empty());
  CHECK(f.router.pushes()[0].packed.size() == 4);
  CHECK(f.router.pushes()[0].gradient_norm == 2);
}

TEST_CASE("a_compress_stage_asks_for_packed_values_and_unpacks_them") {
  fixture f{{encoding::fp16, 0}, encoding::bf16};
  f.router.on_pull([&](const pull_request& asked) {
    auto made = answer_to(asked, 3);
    codec server{f.job};
    server.pack(made, asked.packed_as);
    return made;
  });
  const auto pulling = f.pull(f.coder, fixture::blocks_pull());
  CHECK(f.router.pulls().at(0).packed_as == encoding::bf16);
  REQUIRE(pulling->reply);
  CHECK(pulling->reply->packed.empty());
  REQUIRE(pulling->reply->pieces.size() == 2);
  CHECK(std::fabs(pulling->reply->pieces[0].values.get()[999] - 999) <= 4);
}

TEST_CASE("a_compress_stage_refuses_values_that_nobody_packs") {
  fixture f{{encoding::fp16, 0}, encoding::bf16};
  f.router.on_pull([&](const pull_request& asked) {
    auto made = answer_to(asked, 3);
    codec{f.job}.pack(made, encoding::fp16);
    made.packed[0].size_bytes -= 8;
    return made;
  });
  CHECK(f.pull(f.coder, fixture::blocks_pull())->error->code == errc::malformed);
}

TEST_CASE("a_compress_stage_passes_errors_on") {
  fixture f{{encoding::topk, 0.5}};
  f.router.on_push([](const push_request&) { return failure{errc::rolled_back, "back to 3"}; });
  CHECK(f.push(f.coder, whole_push(f.job))->error == failure{errc::rolled_back, "back to 3"});
  CHECK(f.log
        == std::vector<std::string>{
          "codec: a push failed (back to 3): the residue of its compression is dropped"});
}

TEST_CASE("a_compress_stage_drops_what_it_kept_where_values_beside_a_push_cannot_be_read") {
  fixture f{{encoding::topk, 0.5}, encoding::bf16};
  f.router.on_pull([&](const pull_request& asked) {
    auto made = answer_to(asked, 3);
    codec{f.job}.pack(made, encoding::bf16);
    made.packed[0].size_bytes -= 8;
    return made;
  });
  CHECK(f.pull(f.coder, fixture::blocks_pull())->error->code == errc::malformed);
  CHECK(f.log.empty());
  const auto both = f.ask(f.coder, {whole_push(f.job), fixture::blocks_pull()}, &reply::pulled);
  CHECK(both->error->code == errc::malformed);
  CHECK(f.log.size() == 1);
}

TEST_CASE("a_compress_stage_without_error_feedback_has_nothing_to_drop") {
  fixture f{{encoding::int8, 0}};
  f.router.on_push([](const push_request&) { return failure{errc::rolled_back, ""}; });
  CHECK(f.push(f.coder, whole_push(f.job))->error);
  CHECK(f.log.empty());
}

TEST_CASE("a_compress_stage_gives_up_on_a_router_that_never_answers") {
  fixture f{{encoding::fp16, 0}};
  f.router.on_push([](const push_request&) -> std::optional<fake_kv::push_answer> { return {}; });
  const auto pushing = f.push(f.coder, whole_push(f.job));
  f.advance(599s, 1s);
  CHECK(pushing->pending());
  f.advance(3s, 1s);
  CHECK(pushing->error->code == errc::timed_out);
}

} // namespace compress_stage_test
