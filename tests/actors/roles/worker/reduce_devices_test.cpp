// Tests a reducer whose workers leave their gradients on (emulated) devices.
#include "actors/roles/worker/reduce_stage.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "kernels/devices/device_group.hpp"
#include "kernels/devices/emulated_platform.hpp"
#include "kernels/devices/memory.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <future>

namespace reduce_devices_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::optional<fake_kv::push_answer> receive(const push_request&) { return push_reply{7, false}; }

/// Three workers that have their first values; worker i's device is i. Its gradient is i + 1 times
/// 0, 1, 2, ... in each table.
struct fixture : actor_fixture {
  fixture() : next(*this) {
    next.on_push(receive);
    for (auto& table : job.tables)
      table.optimizer.clip_norm = 1;
    reduces = owned(spawn_stage(system, {.name = "reducer"},
                                make_reduce_stage(job, {.wait = 100ms}, tally), next.handle()));
    next.on_pull({});
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      auto question = whole_pull(job, worker);
      question.step.worker = {worker};
      pull(reduces, question);
    }
    next.on_pull([](const pull_request& asked) { return std::optional{answer_to(asked, 7)}; });
    next.release();
  }

  /// Returns the worker's push with values on the host.
  push_request push_of(std::uint32_t worker, float norm = 1) const {
    auto made = whole_push(job, worker);
    made.step.worker = {worker};
    made.gradient_norm = norm;
    for (auto& x : made.pieces) {
      const auto values = numbers(x.where.count);
      for (std::size_t i = 0; i < x.where.count; ++i)
        values.get()[i] *= static_cast<float>(worker + 1);
      x.values = values;
    }
    return made;
  }

  /// Returns the worker's push with values on its device.
  push_request left_push_of(std::uint32_t worker, float norm = 1) {
    auto made = push_of(worker, norm);
    std::vector<float> flat;
    for (auto& x : made.pieces) {
      flat.insert(flat.end(), x.values.get(), x.values.get() + x.where.count);
      x.values = nullptr;
    }
    const auto stream = make_stream(*on, worker);
    auto there = make_memory<float>(*on, worker, flat.size());
    const auto here = make_pinned<float>(*on, flat.size());
    REQUIRE((stream && there && here));
    std::ranges::copy(flat, here->data());
    on->copy(stream->get(), there->data(), here->data(), flat.size() * sizeof(float));
    REQUIRE(on->synchronize(stream->get()));
    const auto memory = std::make_shared<device_memory<float>>(*std::move(there));
    made.on_device =
      std::make_shared<const device_values>(device_values{group, worker, memory->span(), memory});
    return made;
  }

  /// Returns whether the last forwarded push is `factor` times 0, 1, 2, ...
  bool last_is(float factor) const {
    const auto& last = next.pushes().back();
    return !last.on_device && std::ranges::all_of(last.pieces, [&](const piece& x) {
      for (std::uint64_t i = 0; i < x.where.count; ++i)
        if (x.values.get()[i] != factor * static_cast<float>(i))
          return false;
      return true;
    });
  }

  static constexpr std::uint32_t workers = 3;
  job_spec job = routed_job();
  emulated_machine machine{{.devices = workers}};
  std::unique_ptr<emulated_platform> on = machine.open();
  std::shared_ptr<device_group> group = std::make_shared<device_group>(
    [this] { return result<std::unique_ptr<device_platform>>{machine.open()}; });
  fake_kv next;
  std::shared_ptr<reducer_tally> tally = std::make_shared<reducer_tally>(workers);
  kv reduces;
};

constexpr std::uint64_t gradient_bytes = 10'003 * sizeof(float);

} // namespace

TEST_CASE("a_reducer_adds_up_on_the_devices_what_was_left_there") {
  fixture f;
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    f.push(f.reduces, f.left_push_of(worker));
  REQUIRE(f.next.pushes().size() == 1);
  CHECK(f.last_is(1 + 2 + 3));
  CHECK(f.next.pushes().front().others.size() == 2);
  CHECK(f.tally->device_sums == 1);
  CHECK(f.tally->pushes_summed == 3);
  CHECK(f.machine.copied().from_devices == gradient_bytes);
}

TEST_CASE("a_reducer_clips_each_push_on_its_device") {
  fixture f;
  f.push(f.reduces, f.left_push_of(0, 0.5f)); // This push is not clipped.
  f.push(f.reduces, f.left_push_of(1, 2.0f));
  f.push(f.reduces, f.left_push_of(2, 4.0f));
  REQUIRE(f.next.pushes().size() == 1);
  CHECK(f.last_is(1 + 0.5f * 2 + 0.25f * 3));
  CHECK(f.next.pushes().front().gradient_norm == 0.0f);
}

TEST_CASE("a_reducer_brings_a_push_that_goes_alone_to_the_host") {
  fixture f;
  f.push(f.reduces, f.left_push_of(1, 4.0f));
  f.advance(110ms);
  REQUIRE(f.next.pushes().size() == 1);
  CHECK(f.last_is(2)); // The server clips it.
  CHECK(f.next.pushes().front().gradient_norm == 4.0f);
  CHECK(f.tally->sums == 0);
}

TEST_CASE("a_reducer_adds_up_pushes_of_devices_and_of_the_host") {
  fixture f;
  f.push(f.reduces, f.left_push_of(0));
  f.push(f.reduces, f.push_of(1, 2.0f));
  f.push(f.reduces, f.left_push_of(2));
  REQUIRE(f.next.pushes().size() == 1);
  CHECK(f.last_is(1 + 0.5f * 2 + 3));
  CHECK(f.tally->sums == 1);
  CHECK(f.tally->device_sums == 0);
}

TEST_CASE("pushes_of_a_refused_sum_go_on_as_they_were_left") {
  fixture f;
  f.next.on_push([](const push_request& what) -> std::optional<fake_kv::push_answer> {
    if (!what.others.empty())
      return failure{errc::sum_not_applicable, "one of them was applied"};
    return push_reply{8, false};
  });
  std::vector<std::shared_ptr<outcome<push_reply>>> answers;
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    answers.push_back(f.push(f.reduces, f.left_push_of(worker, 4.0f)));
  REQUIRE(f.next.pushes().size() == 4);
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    CHECK(answers[worker]->reply == push_reply{8, false});
    const auto& alone = f.next.pushes()[1 + worker];
    const auto wanted = f.push_of(alone.step.worker.value);
    CHECK(alone.gradient_norm == 4.0f);
    for (std::size_t k = 0; k < wanted.pieces.size(); ++k)
      CHECK(std::equal(wanted.pieces[k].values.get(),
                       wanted.pieces[k].values.get() + wanted.pieces[k].where.count,
                       alone.pieces[k].values.get()));
  }
}

TEST_CASE("where_a_device_is_lost_the_others_pushes_go_on_and_its_own_is_to_be_computed_again") {
  fixture f;
  std::vector<std::shared_ptr<outcome<push_reply>>> answers;
  std::vector<push_request> pushes;
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    pushes.push_back(f.left_push_of(worker));
  f.on->lose(1);
  for (const auto& x : pushes)
    answers.push_back(f.push(f.reduces, x));
  CHECK(answers[0]->reply == push_reply{7, false});
  CHECK(answers[2]->reply == push_reply{7, false});
  REQUIRE(answers[1]->error);
  CHECK(answers[1]->error->code == errc::device_failed);
  CHECK(answers[1]->error->text == "device 1 is lost");
  REQUIRE(f.next.pushes().size() == 2);
  CHECK(f.last_is(3));
  CHECK(f.tally->sums == 0);
}

TEST_CASE("while_a_reducer_waits_for_devices_other_actors_of_its_process_go_on") {
  actor_config config; // All actors share one thread.
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  std::promise<void> there;
  const auto slow = std::make_shared<device_group>(
    [opened = there.get_future().share()]() -> result<std::unique_ptr<device_platform>> {
      opened.wait();
      return {errc::device_failed, "no device"};
    });
  const auto job = routed_job();
  const kv next = system.spawn([]() -> kv::behavior_type {
    return {[](const request&) { return reply{push_reply{7, false}, {}, {}}; }};
  });
  const auto reduces =
    spawn_stage(system, {.name = "reducer", .own_thread = true},
                make_reduce_stage(job, {.wait = 100ms}, std::make_shared<reducer_tally>(1)), next);
  request left{whole_push(job, 0), {}};
  left.push->on_device = std::make_shared<const device_values>(device_values{slow, 0, {}, nullptr});
  auto waits = self->request(reduces, 1min, left);
  bool answered = false;
  self->request(next, 5s, request{whole_push(job, 1), {}})
    .receive([&](const reply&) { answered = true; }, [](const caf::error&) {});
  CHECK(answered);
  there.set_value();
  std::optional<failure> lost;
  waits.receive([](const reply&) {}, [&](const caf::error& why) { lost = from_caf(why); });
  REQUIRE(lost);
  CHECK(lost->code == errc::device_failed);
  caf::anon_send_exit(reduces, caf::exit_reason::user_shutdown);
}

} // namespace reduce_devices_test
