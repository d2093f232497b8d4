#include "actors/graph/channels.hpp"

#include "actors/graph/plan.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace channels_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct experience {
  std::uint32_t episode = 0;
  float reward = 0;
};

struct player : own_actor {
  out<experience> seen{"seen"};
  in<experience> heard{"heard"};
  out<experience> told{"told"};
};
struct asking : own_actor {
  pulls model{"model"};
};
struct mute : own_actor {};
struct numbered : own_actor {
  explicit numbered(std::uint32_t x) : number(x) {}
  std::uint32_t number;
};
/// A class with a port that is neither an actor nor a trainer.
struct speaker {
  out<experience> voice{"voice"};
};
struct speaking : own_actor, speaker {};

struct listener : virtual trainer {
  in<experience> came{"came"};
  double gradient(const batch&, const_tensors, mutable_tensors) override { return 1; }
};
struct learner final : listener {};
struct deaf final : trainer {
  double gradient(const batch&, const_tensors, mutable_tensors) override { return 1; }
};

trainer_maker learners_of_known_class() {
  return [] { return std::make_unique<learner>(); };
}

std::string rejection_of(const graph& g, const run_options& options = {}) {
  const auto made = lower("tiny", g, options);
  return made ? "" : made.error().text;
}

/// Returns what is wrong with a graph that `add` has made of one with players and learners.
std::string
rejection_with(const std::function<void(graph&, node<workers>&, node<actors<player>>&)>& add,
               std::uint32_t players = 3, std::uint32_t learners = 2,
               trainer_maker make = learners_of_known_class()) {
  graph g;
  auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
  auto some = g.add("learners", workers{.samples = 10, .make = std::move(make), .count = learners});
  some.into(model);
  auto others = g.add("players", actors<player>{.count = players});
  add(g, some, others);
  return rejection_of(g);
}

std::vector<member_id> members(role as, std::vector<std::uint32_t> indices) {
  std::vector<member_id> all;
  for (const auto index : indices)
    all.push_back({as, index, {}});
  return all;
}

} // namespace

TEST_CASE("a_node_of_actors_has_a_maker_or_a_class_that_needs_none") {
  const own_actors plain = actors<player>{.count = 4};
  CHECK(plain.count == 4);
  CHECK(dynamic_cast<player*>(plain.make(0).get()) != nullptr);
  const own_actors by_number =
    actors<numbered>{.make = [](std::uint32_t index) { return std::make_unique<numbered>(index); }};
  CHECK(dynamic_cast<numbered&>(*by_number.make(7)).number == 7);
  const own_actors by_maker =
    actors<numbered>{.make = [] { return std::make_unique<numbered>(9); }};
  CHECK(dynamic_cast<numbered&>(*by_maker.make(7)).number == 9);

  CHECK(rejection_with([](auto& g, auto&, auto&) { g.add("others", actors<numbered>{}); })
        == "others makes no actors: set actors::make, or give the class a default constructor");
  CHECK(rejection_with([](auto& g, auto&, auto&) { g.add("others", actors<mute>{.count = 0}); })
        == "others has no actors: set actors::count to 1 or more");
  CHECK(rejection_with([](auto& g, auto&, auto&) { g.add("others", actors<mute>{.count = 4094}); })
        == "the graph has 4097 actors, and a job has at most 4096");
  CHECK(rejection_with([](auto& g, auto&, auto&) {
          g.add("others", actors<mute>{.count = 4093});
        }).empty()); // Actors that are not joined are allowed.
  CHECK(rejection_with([](auto& g, auto&, auto&) { g.add("actor", actors<mute>{}); })
        == "'actor' is the name of a role on the command line: rename the node");
  CHECK(rejection_with([](auto& g, auto&, auto&) {
          g.add("others", actors<mute>{.on_death = {.crashes_max = 0}});
        })
        == "others: supervision::crashes_max is 0, which is not from 1 to 1000");
  graph idle;
  idle.add("model", servers{.tables = {table_of("w", 4)}});
  idle.add("others", actors<mute>{});
  CHECK(rejection_of(idle) == "the graph has no workers: add troupe::workers");
}

TEST_CASE("a_join_that_cannot_be_is_one_line") {
  const auto join = [](join_shape shape, std::uint32_t window) {
    return [=](auto& g, auto& learners, auto& players) {
      g.join(players, &player::seen, learners, &listener::came, shape, window);
    };
  };
  CHECK(rejection_with(join(join_shape::spread, 8)).empty());
  CHECK(rejection_with(join(join_shape::spread, channel_window_max)).empty());
  CHECK(rejection_with(join(join_shape::spread, 0))
        == "the channel from players to learners has a window of 0: use 1 to 1024");
  CHECK(rejection_with(join(join_shape::spread, 1025))
        == "the channel from players to learners has a window of 1025: use 1 to 1024");
  CHECK(rejection_with(join(join_shape::one_to_one, 8))
        == "players has 3 members and learners has 2: join_shape::one_to_one needs equal counts");
  CHECK(rejection_with(join(join_shape::circle, 8))
        == "players has 3 members and learners has 2: join_shape::circle needs equal counts");
  CHECK(rejection_with(join(join_shape::one_to_one, 8), 1, 2)
        == "players has 1 member and learners has 2: join_shape::one_to_one needs equal counts");
  CHECK(rejection_with(join(join_shape::one_to_one, 8), 2, 2).empty());

  const auto ring = [](join_shape shape) {
    return [=](auto& g, auto&, auto& players) {
      g.join(players, &player::told, players, &player::heard, shape);
    };
  };
  CHECK(rejection_with(ring(join_shape::circle)).empty());
  CHECK(
    rejection_with(ring(join_shape::circle), 1)
    == "players has 1 member, which join_shape::circle would join with itself: raise its count");
  for (const auto shape : {join_shape::spread, join_shape::one_to_one})
    CHECK(rejection_with(ring(shape))
          == "join_shape::" + std::string{to_string(shape)}
               + " would join each member of players with itself: use join_shape::circle");
}

TEST_CASE("a_port_is_joined_once") {
  CHECK(rejection_with([](auto& g, auto& learners, auto& players) {
          auto others = g.add("others", actors<player>{});
          g.join(players, &player::seen, others, &player::heard);
          g.join(players, &player::seen, learners, &listener::came);
        })
        == "one port of players is joined with others and with learners: a port is joined once, so "
           "give it another port");
  CHECK(rejection_with([](auto& g, auto&, auto& players) {
          auto others = g.add("others", actors<player>{});
          g.join(players, &player::seen, others, &player::heard);
          g.join(players, &player::told, others, &player::heard);
        })
        == "one port of others is joined with players and with players: a port is joined once, so "
           "give it another port");
  CHECK(rejection_with([](auto& g, auto&, auto& players) {
          auto others = g.add("others", actors<player>{}); // One port of two nodes is two ports.
          g.join(players, &player::seen, others, &player::heard);
          g.join(others, &player::seen, players, &player::heard);
        }).empty());
}

TEST_CASE("a_member_has_at_most_as_many_ports_as_its_reports_hold") {
  const auto joined = [](std::size_t times) {
    return rejection_with([times](auto& g, auto& learners, auto& players) {
      for (std::size_t i = 0; i < times; ++i)
        g.join(players, &player::seen, learners, &listener::came);
    });
  };
  CHECK(joined(ports_max).starts_with("one port of players is joined with"));
  CHECK(joined(ports_max + 1)
        == "players has more than 64 joined ports, and a member has at most 64: send several kinds "
           "of parcels through one port");
}

TEST_CASE("a_join_belongs_to_the_graph_of_its_nodes") {
  graph other;
  auto strangers = other.add("strangers", actors<player>{});
  CHECK(rejection_with([&](auto& g, auto& learners, auto&) {
          g.join(strangers, &player::seen, learners, &listener::came);
        })
        == "strangers and learners are joined by another graph than their own: call join() of the "
           "graph that has both");
}

TEST_CASE("the_class_of_trainers_has_the_port_as_far_as_it_is_known") {
  const auto join = [](auto& g, auto& learners, auto& players) {
    g.join(players, &player::seen, learners, &listener::came);
  };
  CHECK(rejection_with(join, 3, 2, [] { return std::make_unique<listener>(); }).empty());
  CHECK(
    rejection_with(join, 3, 2, [](std::uint32_t) { return std::make_unique<learner>(); }).empty());
  CHECK(rejection_with(join, 3, 2, [] { return std::make_unique<deaf>(); })
        == "learners makes trainers of the class channels_test::(anonymous namespace)::deaf, which "
           "lacks the port that is joined with players");
  CHECK(
    rejection_with(join, 3, 2, local_steps([] { return std::make_unique<deaf>(); }, {.steps = 2}))
    == rejection_with(join, 3, 2, [] { return std::make_unique<deaf>(); }));
  const auto unknown = [] { return std::unique_ptr<trainer>{std::make_unique<deaf>()}; };
  CHECK(rejection_with(join, 3, 2, unknown).empty()); // The worker finds it, see below.
}

TEST_CASE("channels_do_not_fit_every_store_and_every_way_to_run") {
  const auto graph_with = [](any_store store, bool joined) {
    graph g;
    auto model = g.add("model", std::move(store));
    auto some = g.add("learners", workers{.samples = 10, .make = learners_of_known_class()});
    some.into(model);
    auto players = g.add("players", actors<player>{});
    if (joined)
      g.join(players, &player::seen, some, &listener::came);
    return g;
  };
  run_options in_threads;
  in_threads.asked_mode = run_mode::threads;
  for (const bool joined : {false, true}) {
    CHECK(rejection_of(graph_with(all_reduce{.tables = {table_of("w", 4)}}, joined))
          == "model is an all-reduce, whose workers reach each other alone: leave the actors and "
             "channels out, or use --sync bsp");
    CHECK(rejection_of(graph_with(shared_memory{{table_of("w", 4)}}, joined), in_threads)
          == "model is shared memory, without a coordinator that lists members: leave the actors "
             "and channels out, or use --sync asp");
  }
  const auto with_servers = [&](bool joined) {
    return graph_with(servers{.tables = {table_of("w", 4)}}, joined);
  };
  run_options recorded;
  recorded.record_directory = "trace";
  CHECK(rejection_of(with_servers(true), recorded)
        == "--record: tiny has channels, whose parcels a replay does not have: leave the option "
           "out");
  CHECK(rejection_of(with_servers(false), recorded).empty());
  run_options replayed;
  replayed.replay_directory = "trace";
  CHECK(rejection_of(with_servers(true), replayed).starts_with("--replay: tiny has channels"));
  run_options shared;
  shared.workers.per_process = 2;
  CHECK(rejection_of(with_servers(true), shared).empty());
}

namespace {

/// Returns the plan of a graph with all shapes. `options`: of the command line.
result<plan> plan_of_shapes(const run_options& options = {}) {
  graph g;
  auto table = table_of("w", 4);
  table.sync.mode = consistency_mode::bsp; // So that there may be a backup worker.
  auto model = g.add("model", servers{.tables = {table}});
  g.add("mutes", actors<mute>{.count = 2});
  auto players = g.add("players", actors<player>{.count = 3});
  auto learners =
    g.add("learners",
          workers{.samples = 10, .make = learners_of_known_class(), .count = 2, .backups = 1});
  auto others = g.add("others", actors<player>{.count = 3});
  learners.into(model);
  others.into(model);
  g.join(players, &player::seen, learners, &listener::came, join_shape::spread, 4);
  g.join(players, &player::told, others, &player::heard, join_shape::one_to_one, 1);
  g.join(others, &player::told, players, &player::heard, join_shape::circle);
  return lower("tiny", g, options);
}

/// Returns the ends of a member as texts.
std::vector<std::string> ends_of(const plan& what, role as, std::uint32_t index) {
  std::vector<std::string> all;
  for (const auto& [end, port] : channels_of(what, {as, index, {}})) {
    auto text = end.channel + (end.sends ? " to" : " from");
    for (const auto& peer : end.peers)
      text += " " + to_string(process_of(peer));
    all.push_back(text);
  }
  return all;
}

} // namespace

TEST_CASE("each_member_knows_its_ends_of_channels") {
  const auto made = plan_of_shapes();
  REQUIRE(made);
  using texts = std::vector<std::string>;
  CHECK(made->options.actors == 8);
  CHECK(made->job.actors == 8);
  CHECK(ends_of(*made, role::actor, 0).empty());
  CHECK(ends_of(*made, role::actor, 2)
        == texts{"players>learners to worker 0 worker 1 worker 2", "players>others to actor 5",
                 "others>players from actor 7"});
  CHECK(ends_of(*made, role::actor, 4)
        == texts{"players>learners to worker 0 worker 1 worker 2", "players>others to actor 7",
                 "others>players from actor 6"});
  CHECK(ends_of(*made, role::actor, 7)
        == texts{"players>others from actor 4", "others>players to actor 2"});
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    CHECK(ends_of(*made, role::worker, worker)
          == texts{"players>learners from actor 2 actor 3 actor 4"});
  CHECK(ends_of(*made, role::worker, 3).empty());
  CHECK(ends_of(*made, role::server, 2).empty());
  const auto end = channels_of(*made, {role::worker, 0, {5}}).front().end;
  CHECK(end.window == 4);
  CHECK(end.head == head_type_of<experience>());
  CHECK(end.peers == members(role::actor, {2, 3, 4}));
}

TEST_CASE("two_channels_of_the_same_nodes_have_two_names") {
  graph g;
  auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
  g.add("learners", workers{.samples = 10, .make = learners_of_known_class()}).into(model);
  auto players = g.add("players", actors<player>{.count = 2});
  auto others = g.add("others", actors<player>{.count = 2});
  auto speakers = g.add("speakers", actors<speaking>{});
  g.join(players, &player::seen, others, &player::heard);
  g.join(speakers, &speaker::voice, players, &player::heard);
  const auto made = lower("tiny", g, {});
  REQUIRE(made);
  CHECK(ends_of(*made, role::actor, 0)
        == std::vector<std::string>{"players>others to actor 2 actor 3",
                                    "speakers>players from actor 4"});
  graph twice;
  auto store = twice.add("model", servers{.tables = {table_of("w", 4)}});
  struct pair : own_actor {
    in<experience> a{"a"}, b{"b"};
  };
  twice.add("learners", workers{.samples = 10, .make = learners_of_known_class()}).into(store);
  auto senders = twice.add("senders", actors<player>{});
  auto pairs = twice.add("pairs", actors<pair>{});
  twice.join(senders, &player::seen, pairs, &pair::b);
  twice.join(senders, &player::told, pairs, &pair::a);
  const auto named = lower("tiny", twice, {});
  REQUIRE(named);
  REQUIRE(named->channels.size() == 2);
  CHECK(named->channels[0].name == "senders>pairs");
  CHECK(named->channels[1].name == "senders>pairs.2");
  const auto one = [&] {
    try {
      return make_actor(*named, 0).ports.ends.size();
    } catch (const std::invalid_argument& problem) {
      CHECK(std::string{problem.what()}
            == "the port 'heard' of senders is not joined: call graph::join(), or leave the port "
               "out");
      return std::size_t{0};
    }
  };
  CHECK(one() == 0);
  const auto two = make_actor(*named, 1);
  REQUIRE(two.ports.ends.size() == 2);
  CHECK(two.ports.ends[0].port == "b");
  CHECK(two.ports.ends[1].port == "a");
  CHECK(two.ports.joined[1] == &dynamic_cast<pair&>(*two.actor).a);
}

namespace {

/// Returns the text with which an actor of a class is refused. `wire`: gets its node.
template <class A>
std::string
refusal_of_actor(actors<A> what,
                 const std::function<void(graph&, node<servers>&, node<actors<A>>&)>& wire) {
  graph g;
  auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
  g.add("learners", workers{.samples = 10, .make = learners_of_known_class()}).into(model);
  auto some = g.add("some", std::move(what));
  wire(g, model, some);
  const auto made = lower("tiny", g, {});
  REQUIRE(made);
  try {
    make_actor(*made, 0);
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "";
}

} // namespace

TEST_CASE("an_actor_is_made_with_its_place_and_its_ports") {
  const auto made = plan_of_shapes();
  REQUIRE(made);
  const auto one = make_actor(*made, 3); // Player 1.
  CHECK(one.actor->where().index == 1);
  CHECK(one.actor->where().count == 3);
  CHECK(one.actor->where().seed != make_actor(*made, 4).actor->where().seed);
  CHECK(one.actor->where().seed == make_actor(*made, 3).actor->where().seed);
  auto& ports = dynamic_cast<player&>(*one.actor);
  CHECK(one.ports.joined == std::vector<port_base*>{&ports.seen, &ports.told, &ports.heard});
  CHECK(one.ports.ends[0].port == "seen");
  CHECK(one.ports.ends[0].channel == "players>learners");
  CHECK(one.ports.pulls.empty());
  CHECK(node_of_actor(*made, 1).name == "mutes");
  CHECK(node_of_actor(*made, 2).name == "players");
  CHECK(node_of_actor(*made, 7).name == "others");
}

TEST_CASE("an_actor_with_wrong_ports_is_refused_when_it_is_made") {
  const auto no_wire = [](auto&, auto&, auto&) {};
  CHECK(refusal_of_actor<mute>({}, no_wire).empty());
  CHECK(refusal_of_actor<speaking>({}, no_wire)
        == "the port 'voice' of some is not joined: call graph::join(), or leave the port out");
  CHECK(refusal_of_actor<asking>({}, no_wire)
        == "the port 'model' of some pulls, and some leads to no store: call some.into(...)");
  CHECK(
    refusal_of_actor<asking>({}, [](auto&, auto& model, auto& some) { some.into(model); }).empty());
  CHECK(refusal_of_actor<mute>({.make = [] { return std::unique_ptr<mute>{}; }}, no_wire)
        == "some made no actor: its maker returned null");
  struct twins : own_actor {
    pulls one{"model"}, other{"model"};
  };
  CHECK(refusal_of_actor<twins>({}, [](auto&, auto& model, auto& some) { some.into(model); })
        == "two ports of some are named 'model': rename one");
  struct greedy : own_actor {
    pulls one{"one"}, other{"other"};
  };
  CHECK(refusal_of_actor<greedy>({}, [](auto&, auto& model, auto& some) { some.into(model); })
        == "two ports of some pull, 'one' and 'other': one ask() brings all tables, so leave one "
           "out");
}

TEST_CASE("the_ports_of_trainers_do_not_pull") {
  struct puller : listener {
    pulls model{"model"};
  };
  graph g;
  auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
  auto learners = g.add("learners", workers{.samples = 10, .make = [] {
                                              return std::make_unique<puller>();
                                            }});
  learners.into(model);
  auto players = g.add("players", actors<player>{});
  g.join(players, &player::seen, learners, &listener::came);
  const auto made = lower("tiny", g, {});
  REQUIRE(made);
  CHECK_THROWS_WITH(trainer_of(*made, made->job, 0, {}, [](const member_ports&) {})(),
                    "the port 'model' of learners pulls, and trainers get values in gradient(): "
                    "leave the port out");
}

TEST_CASE("the_ports_of_a_trainer_are_found_within_local_steps_and_push_functions") {
  const auto graph_with = [](trainer_maker make, bool joined = true) {
    graph g;
    auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
    auto learners = g.add("learners", workers{.samples = 10, .make = std::move(make)});
    learners.into(map_push("same", [](const push_info&, mutable_tensors) {}), model);
    auto players = g.add("players", actors<player>{});
    if (joined)
      g.join(players, &player::seen, learners, &listener::came);
    return g;
  };
  std::vector<port_base*> found;
  const auto refusal = [&](const graph& g, bool takes = true) {
    const auto made = lower("tiny", g, {});
    REQUIRE(made);
    found.clear();
    const auto take = [&](const member_ports& ports) {
      found = ports.joined;
      REQUIRE(ports.ends.size() == 1);
      CHECK(ports.ends[0].port == "came");
      CHECK(ports.ends[0].peers == members(role::actor, {0}));
    };
    try {
      const auto whole = trainer_of(*made, made->job, 2, {}, takes ? ports_taker{take} : nullptr)();
      CHECK(whole);
      return std::string{};
    } catch (const std::invalid_argument& problem) {
      return std::string{problem.what()};
    }
  };
  const trainer_maker make = learners_of_known_class();
  CHECK(refusal(graph_with(make)).empty());
  CHECK(found.size() == 1);
  CHECK(refusal(graph_with(local_steps(make, {.steps = 2}))).empty());
  CHECK(found.size() == 1);
  CHECK(refusal(graph_with(make), false)
        == "the trainers of learners have ports, and neither a replay nor a store without servers "
           "connects them: leave the ports out");
  CHECK(refusal(graph_with(make, false))
        == "the port 'came' of learners is not joined: call graph::join(), or leave the port out");
  CHECK(refusal(graph_with([] { return std::unique_ptr<trainer>{std::make_unique<deaf>()}; }))
        == "the objects that learners makes lack the port that the channel players>learners joins");
  CHECK(refusal(graph_with([] { return std::unique_ptr<trainer>{std::make_unique<learner>()}; }))
          .empty());
  CHECK(refusal(graph_with([] { return std::make_unique<deaf>(); }, false), false).empty());
}

TEST_CASE("options_name_actors_by_their_nodes") {
  run_options options;
  options.listen = endpoint{"127.0.0.1", 4000};
  options.by_node = {{"--here", "players", 1, {}},
                     {"--kill", "players", 0, std::chrono::seconds{2}},
                     {"--kill", "others", 2, std::chrono::seconds{3}}};
  const auto made = plan_of_shapes(options);
  REQUIRE(made);
  CHECK(made->options.here == std::vector<process_name>{{role::actor, 3}});
  REQUIRE(made->options.kills.size() == 2);
  CHECK(made->options.kills[0].who == process_name{role::actor, 2});
  CHECK(made->options.kills[1].who == process_name{role::actor, 7});
  const auto roles = node_roles_of(*made);
  CHECK(roles
        == node_roles{{"learners", "worker"},
                      {"model", "server"},
                      {"mutes", "actor", 0},
                      {"players", "actor", 2},
                      {"others", "actor", 5}});
  CHECK(node_of(roles, {role::actor, 4})->node == "players");
  CHECK(node_of(roles, {role::worker, 4})->node == "learners");
  CHECK(node_of(roles, {role::coordinator, 0}) == nullptr);

  const auto text = [&](const named_process& named) {
    options.by_node = {named};
    const auto wrong = plan_of_shapes(options);
    return wrong ? "" : wrong.error().text;
  };
  CHECK(text({"--kill", "players", 9, {}}) == "--kill: players has no actor 9, only 0 to 2");
  CHECK(text({"--here", "players", 3, {}}) == "--here: players has no actor 3, only 0 to 2");
  CHECK(text({"--slow", "players", 0, {}})
        == "--slow: players has actors, which take no steps: name learners");
  CHECK(text({"--kill", "nobody", 0, {}})
        == "--kill: tiny has no processes of the name 'nobody': name learners or model or mutes or "
           "players or others");
  options.by_node.clear();
  options.kills = {{{role::actor, 8}, std::chrono::seconds{1}}};
  CHECK(plan_of_shapes(options).error().text
        == "--kill: the job has only workers 0 to 2, servers 0 to 1 and actors 0 to 7");
  options.kills.clear();
  options.here = {{role::actor, 8}};
  CHECK(plan_of_shapes(options).error().text == "--here: the job has no actor 8, only 0 to 7");
}

TEST_CASE("a_plan_with_channels_says_what_a_death_costs") {
  const auto made = plan_of_shapes();
  REQUIRE(made);
  const auto text = to_text(*made);
  for (const auto* const line :
       {"mutes      actors x2\n", "others     actors x3                => model\n",
        "players    channel, spread          ~> learners, window 4; a death: at most 4 parcels of "
        "each lane\n",
        "players    channel, one_to_one      ~> others, window 1; a death: at most 1 parcel of "
        "each lane\n",
        "others     channel, circle          ~> players, window 8; a death: at most 8 parcels of "
        "each lane\n",
        "record and replay: no, parcels of channels are not recorded\n"}) {
    CAPTURE(text);
    CAPTURE(line);
    CHECK(text.find(line) != std::string::npos);
  }
  const auto dot = to_dot(*made);
  for (const auto* const line :
       {"  players [shape=box, label=\"players\\nactors x3\"];\n",
        "  others -> model [dir=back];\n",
        "  players -> learners [style=dashed, label=\"spread, window 4\"];\n"}) {
    CAPTURE(dot);
    CHECK(dot.find(line) != std::string::npos);
  }
  CHECK(dot.find("players -> model") == std::string::npos);
}

} // namespace channels_test
