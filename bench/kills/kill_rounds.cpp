#include "bench/kills/kill_rounds.hpp"

#include "fmt/core.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

namespace troupe::bench {

namespace {

/// Longest time, in seconds, from replies on both sides to a kill: some of the greatest requests
/// take as long.
constexpr double kill_delay_max = 0.06;
/// The part of a peak that allocators and pools keep differs from round to round. A leak of 1 MB a
/// round would be more after 63 rounds.
constexpr double memory_growth_mb_max = 48;

/// Unmapped memory is counted until the system has taken it apart.
constexpr double shared_mb_tolerated = 1;

/// Returns true if all is given back. A dead peer's share is given back soon, but on other threads.
bool returned(const process_state& rest, const process_state& now) {
  return now.descriptors == rest.descriptors && now.threads == rest.threads
         && now.arenas == rest.arenas && now.actors == rest.actors
         && now.shared_mb < shared_mb_tolerated;
}

/// The process that survives.
class survivor {
public:
  survivor(const link_kind& kind, const kill_plan& plan)
      : kind_(kind), plan_(plan), dice_(plan.seed), options_(options_of(kind, plan.certificates)),
        self_(identity_of(0, 1)), plain_(options_, dice_()), kv_(options_, self_, dice_()),
        plain_where_(plain_.listen()), kv_where_(kv_.listen()), rest_(state()) {}

  kill_figures measure(killed_side side);

private:
  void play_round(killed_side side, kill_figures& found);
  bool meet(killed_side side, child& peer, const member_id& whom);
  /// Returns the time of the kill.
  double kill_at_some_moment(pid_t process);
  process_state state();

  const link_kind& kind_;
  const kill_plan& plan_;
  std::mt19937_64 dice_;
  transport_options options_;
  member_id self_;
  plain_end plain_;
  kv_end kv_;
  endpoint plain_where_, kv_where_;
  process_state rest_; ///< Before any link.
  std::uint64_t last_start_ = 1;
};

process_state survivor::state() {
  process_state found = state_of_this_process();
  found.actors = kv_.actors();
  return found;
}

kill_figures survivor::measure(killed_side side) {
  kill_figures warm_up;
  play_round(side, warm_up);
  wait_until([&] { return returned(rest_, state()); });
  kill_figures found;
  found.kind = kind_.name;
  found.side = side;
  found.rounds = plan_.rounds;
  found.before = state();
  for (std::size_t i = 0; i < plan_.rounds; ++i)
    play_round(side, found);
  if (!wait_until([&] { return returned(rest_, state()); }))
    found.problems.push_back(
      "descriptors, threads, arenas, actors or shared memory are not given back");
  found.after = state();
  const double growth = found.after.resident_mb - found.before.resident_mb;
  if (growth > memory_growth_mb_max)
    found.problems.push_back(fmt::format("memory grew by {:.0f} MB", growth));
  return found;
}

void survivor::play_round(killed_side side, kill_figures& found) {
  const auto whom = identity_of(1, ++last_start_);
  json part{{"part", "killed"},
            {"kind", kind_.name},
            {"certificates", plan_.certificates.string()},
            {"seed", dice_()},
            {"start", whom.incarnation.value}};
  if (side == killed_side::client)
    part.update({{"plain", plain_where_.port}, {"kv", kv_where_.port}});
  child peer{part, {}};
  if (!meet(side, peer, whom)) {
    found.problems.push_back("no requests flow");
    kill(peer.pid(), SIGKILL);
  }
  const double killed = kill_at_some_moment(peer.pid());
  const auto link = plain_.take();
  const auto requests = kv_.take();
  found.links += link.requests;
  found.requests += requests.requests;
  for (const double at : link.told)
    found.link_us.push_back(1e6 * (at - killed));
  if (!requests.told.empty())
    found.last_us.push_back(1e6 * (std::ranges::max(requests.told) - killed));
}

bool survivor::meet(killed_side side, child& peer, const member_id& whom) {
  if (side == killed_side::client)
    return plain_.wait_flowing() && kv_.wait_served();
  const auto where = peer.line().receive();
  plain_.connect({"127.0.0.1", where.at("plain")});
  kv_.ask({"127.0.0.1", where.at("kv")}, whom);
  return plain_.wait_flowing() && kv_.wait_flowing();
}

double survivor::kill_at_some_moment(pid_t process) {
  const double begin = seconds_now();
  const double end = begin + std::uniform_real_distribution{0.0, kill_delay_max}(dice_);
  // This thread writes to the link as well: before, during and after the kill.
  wait_until(
    [&] {
      plain_.send_more();
      return seconds_now() >= end;
    },
    kill_delay_max);
  const double killed = seconds_now();
  kill(process, SIGKILL);
  wait_until([&] {
    plain_.send_more();
    return plain_.told_lost();
  });
  return killed;
}

} // namespace

const char* name_of(killed_side side) { return side == killed_side::server ? "server" : "client"; }

std::vector<kill_figures> kill_rounds(const link_kind& kind, const kill_plan& plan) {
  auto self = std::make_unique<survivor>(kind, plan);
  std::vector<kill_figures> found{self->measure(killed_side::server),
                                  self->measure(killed_side::client)};
  // An actor that never ends would block its system, and the problem would not be reported.
  if (std::ranges::any_of(found, [](const auto& x) { return !x.problems.empty(); }))
    (void)self.release();
  return found;
}

void play_killed_part(const json& part) {
  const auto options =
    options_of(kind_named(part.at("kind")), part.at("certificates").get<std::string>());
  const std::uint64_t seed = part.at("seed");
  plain_end plain{options, seed};
  kv_end kv{options, identity_of(1, part.at("start")), seed + 1};
  if (part.contains("plain")) {
    plain.connect({"127.0.0.1", part.at("plain")});
    kv.ask({"127.0.0.1", part.at("kv")}, identity_of(0, 1));
  } else {
    parent_line().send({{"plain", plain.listen().port}, {"kv", kv.listen().port}});
  }
  for (;;)
    pause();
}

} // namespace troupe::bench
