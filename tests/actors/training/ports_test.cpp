#include "actors/training/own_actor.hpp"
#include "actors/training/ports.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ports_test {

using namespace troupe;

namespace {

struct experience {
  std::uint32_t episode = 0;
  float reward = 0;
};

/// A line with two peers, which keeps what is sent.
class kept_line final : public port_line {
public:
  bool send(std::uint32_t to, std::vector<std::byte> head,
            std::vector<parcel_tensor> tensors) override {
    if (!has_credit)
      return false;
    sent_to.push_back(to);
    sent.push_back({1, sent.size() + 1, std::move(head), std::move(tensors)});
    return true;
  }
  bool ready(std::uint32_t) const override { return has_credit; }
  std::uint32_t peers() const override { return 2; }
  bool may_wait() const override { return true; }
  std::optional<std::pair<parcel_message, std::uint32_t>>
  next(std::chrono::nanoseconds timeout) override {
    waited = timeout;
    if (sent.empty())
      return std::nullopt;
    return std::pair{sent.back(), 1u};
  }
  void ask(std::vector<std::vector<std::uint64_t>> keys) override { asked.push_back(keys); }

  bool has_credit = true;
  std::vector<std::uint32_t> sent_to;
  std::vector<parcel_message> sent;
  std::chrono::nanoseconds waited{0};
  std::vector<std::vector<std::vector<std::uint64_t>>> asked;
};

struct player : own_actor {
  out<experience> seen{"seen"};
  in<float> rate{"rate"};
  pulls model{"model"};
};

template <class Call>
std::string text_of_exception(Call call) {
  try {
    call();
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return "";
}

} // namespace

TEST_CASE("ports_register_with_the_innermost_collector_of_their_thread") {
  const player outside;
  const port_collector around;
  const player first;
  {
    const port_collector inner;
    const player second;
    CHECK(inner.ports()
          == std::vector<port_base*>{const_cast<out<experience>*>(&second.seen),
                                     const_cast<in<float>*>(&second.rate),
                                     const_cast<pulls*>(&second.model)});
    std::thread{[] { const player elsewhere; }}.join();
    CHECK(inner.ports().size() == 3);
  }
  CHECK(around.ports().size() == 3);
  CHECK(around.ports().front() == &first.seen);
  { const player gone; }
  CHECK(around.ports().size() == 3); // Ports that have died are no longer listed.
  std::optional<port_collector> shorter;
  shorter.emplace();
  auto longer = std::make_unique<player>();
  CHECK(shorter->ports().size() == 3);
  shorter.reset();
  longer.reset(); // A collector may die before its ports.
  CHECK(around.ports().size() == 3);
}

TEST_CASE("a_port_has_a_name_as_nodes_have") {
  for (const auto* const wrong : {"", "Seen", "a b", "elevenchars"})
    CHECK_THROWS_AS(out<experience>{wrong}, std::invalid_argument);
  CHECK(text_of_exception([] { pulls{"no-name"}; })
        == "'no-name' is no name of a port: use 1 to 10 of the characters a-z, 0-9 and _");
  const player one;
  CHECK(one.seen.name() == "seen");
  CHECK(one.seen.what() == port_base::kind::out);
  CHECK(one.seen.head() == head_type_of<experience>());
  CHECK(one.rate.what() == port_base::kind::in);
  CHECK(one.rate.head() == "f32 4/4");
  CHECK(one.model.what() == port_base::kind::pulls);
  CHECK(one.model.head().empty());
}

TEST_CASE("a_parcel_arrives_as_it_was_sent") {
  player one;
  kept_line line;
  one.seen.connect(&line);
  CHECK(one.seen.is_connected());
  CHECK(one.seen.peers() == 2);
  const tensor values{std::vector{1.0f, 2.0f, 3.0f}};
  REQUIRE(one.seen.send({{7, 0.5f}, {values, tensor{}}}, 1));
  CHECK(line.sent_to == std::vector{1u});
  CHECK(line.sent[0].tensors[0].values.get() == values.values().data()); // Not copied.

  in<experience> came{"came"};
  came.connect(&line);
  std::vector<parcel<experience>> taken;
  CHECK_FALSE(came.takes()); // The room keeps its parcels for next().
  came.take = [&](parcel<experience>&& each) { taken.push_back(std::move(each)); };
  CHECK(came.takes());
  came.deliver(parcel_message{line.sent[0]}, 3);
  const auto next = came.next(std::chrono::milliseconds{20});
  REQUIRE(next);
  CHECK(line.waited == std::chrono::milliseconds{20});
  CHECK(next->from == 1);
  REQUIRE(taken.size() == 1);
  taken.push_back(*next);
  for (const auto& each : taken) {
    CHECK(each.head.episode == 7);
    CHECK(each.head.reward == 0.5f);
    REQUIRE(each.tensors.size() == 2);
    CHECK(each.tensors[0].size() == 3);
    CHECK(each.tensors[0].values()[2] == 3.0f);
    CHECK(each.tensors[1].size() == 0);
  }
  CHECK(taken[0].from == 3);
  line.sent.clear();
  CHECK_FALSE(came.next(std::chrono::seconds{1}));
}

TEST_CASE("send_tells_of_credit_and_refuses_what_no_channel_takes") {
  player one;
  CHECK(text_of_exception([&] { (void)one.seen.send({}, 0); })
        == "the port 'seen' is used before start(), or is not joined: call graph::join()");
  CHECK_THROWS_AS(one.model.ask(), std::logic_error);
  kept_line line;
  one.seen.connect(&line);
  line.has_credit = false;
  CHECK_FALSE(one.seen.ready(0));
  CHECK_FALSE(one.seen.send({}, 0));
  line.has_credit = true;
  CHECK(one.seen.ready(0));
  CHECK_THROWS_AS((void)one.seen.ready(2), std::out_of_range);
  CHECK_THROWS_AS((void)one.seen.send({}, 2), std::out_of_range);
  CHECK(text_of_exception([&] { (void)one.seen.send({}, 2); })
        == "the port 'seen' has no peer 2: it has 2");
  const std::vector<tensor> many(parcel_tensors_max + 1);
  CHECK(text_of_exception([&] {
          (void)one.seen.send({{}, many}, 0);
        })
        == "the port 'seen': a parcel has 257 tensors, and 256 is the most");
  const auto value = std::make_shared<const float>(1.0f); // Only its size is looked at.
  const tensor half{value, parcel_floats_max / 2};
  CHECK(one.seen.send({{}, {half, half}}, 0));
  CHECK(text_of_exception([&] {
          (void)one.seen.send({{}, {half, half, {value, 1}}}, 0);
        })
        == "the port 'seen': a parcel has tensors of more than 1 GiB together: send it in parts");
  CHECK(text_of_exception([&] {
          (void)one.seen.send({{}, {{value, ~std::uint64_t{0}}}}, 0);
        }).ends_with("send it in parts"));
  CHECK(text_of_exception([&] {
          (void)one.seen.send({{}, {{float_ptr{}, 5}}}, 0);
        })
        == "the port 'seen': a parcel has a tensor of 5 floats without values");
  CHECK(line.sent.size() == 1);
  CHECK(one.seen.send({{}, {{float_ptr{}, 0}, {}}}, 0)); // Empty tensors need none.
}

TEST_CASE("callbacks_of_a_port_are_called_if_they_are_set") {
  player one;
  kept_line line;
  one.model.connect(&line);
  one.model.ask();
  one.model.ask({{}, {4, 9}});
  CHECK(line.asked == std::vector<std::vector<std::vector<std::uint64_t>>>{{}, {{}, {4, 9}}});
  const std::vector<float> table{5, 6};
  const std::span<const float> view{table};
  float seen = 0;
  std::vector<std::uint32_t> writable;
  one.model.deliver_values({&view, 1});
  one.seen.deliver_writable(0);
  one.model.take = [&](const_tensors values) { seen = values[0][1]; };
  one.seen.writable = [&](std::uint32_t to) { writable.push_back(to); };
  one.model.deliver_values({&view, 1});
  one.seen.deliver_writable(1);
  CHECK(seen == 6);
  CHECK(writable == std::vector{1u});
}

} // namespace ports_test
