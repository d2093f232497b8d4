#include "bench/kills/kill_pushes.hpp"

#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "bench/kills/process_state.hpp"
#include "bench/store/kv_requests.hpp"
#include "bench/store/server_host.hpp"
#include "serialization/layout.hpp"
#include "serialization/wire.hpp"

#include "caf/send.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>

namespace troupe::bench {

namespace {

constexpr std::uint32_t clients = 2, servers = 2;
/// 256 KB, in 16 blocks: each server's part of a push is a body of 128 KB, which an arena takes.
constexpr std::uint64_t floats = 1 << 16;
constexpr std::uint64_t pushes_open = 8;
/// Acknowledged pushes between two breaks of one client; a restart repeats some of them.
constexpr std::uint64_t acknowledged_per_break = 24;
/// Longest time from an acknowledgement to a kill, in seconds.
constexpr double break_delay_max = 0.004;
constexpr std::chrono::seconds shard_request_end{60};

/// Returns a job with plain steps of 1 from 0: each element is minus the sum of its gradients,
/// exactly.
job_spec counting_job() {
  job_spec job = one_table_job(floats, clients, servers);
  job.tables[0].optimizer.learning_rate = 1;
  return job;
}

/// Returns a gradient: batch b adds 1 to each element i with i mod `batches` = b, 0 to the others.
std::shared_ptr<float> gradient_of(std::uint64_t batch, std::uint64_t batches) {
  std::shared_ptr<float> made{new float[floats](), std::default_delete<float[]>{}};
  for (std::uint64_t i = batch; i < floats; i += batches)
    made.get()[i] = 1;
  return made;
}

void count(const pull_reply& found, std::uint64_t batches, push_figures& figures) {
  enum : std::uint8_t { missed = 1, again = 2 };
  std::vector<std::uint8_t> fate(batches);
  std::uint64_t elements = 0;
  for (const auto& part : found.pieces)
    for (std::uint64_t i = 0; i < part.where.count; ++i, ++elements) {
      const float times = -part.values.get()[i];
      auto& of = fate[(part.where.first + i) % batches];
      if (times != 1)
        of |= times < 1 ? missed : again;
    }
  if (elements != floats)
    throw std::runtime_error{"not all values were pulled"};
  for (const auto each : fate) {
    figures.lost += each & missed ? 1 : 0;
    figures.doubled += each & again ? 1 : 0;
  }
}

/// Shuts down one connection of this process, as a network may. Returns the number of cuts.
int cut_a_connection(std::mt19937_64& dice, int spared) {
  std::vector<int> found;
  for (const auto& name : names_in("/proc/self/fd")) {
    const int descriptor = std::stoi(name);
    int listens = 1;
    socklen_t size = sizeof listens;
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    if (descriptor > STDERR_FILENO && descriptor != spared
        && getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0
        && getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
      found.push_back(descriptor);
  }
  return !found.empty() && shutdown(found[dice() % found.size()], SHUT_RDWR) == 0 ? 1 : 0;
}

// -- a process with a kv of all servers ---------------------------------------------------------

hello shard_greeting(const member_id& self) {
  return {wire::protocol_version, fingerprint(counting_job()), 0, self};
}

class shard_client {
public:
  shard_client(const link_kind& kind, const kill_plan& plan, std::uint32_t index,
               const std::vector<std::string>& addresses)
      : links_(system_, shard_greeting({role::worker, index, first_start(index)}), {},
               options_of(kind, plan.certificates)) {
    const auto job = counting_job();
    std::vector<chain_entry> entries;
    std::vector<member_address> listeners;
    for (std::uint32_t i = 0; i < servers; ++i) {
      entries.push_back({{i}, server_identity(i), true});
      listeners.push_back({server_identity(i), addresses.at(i)});
    }
    const auto router = spawn_router(system_, job, links_.to_servers());
    caf::anon_send(router, view_atom_v,
                   view{{1}, {1}, entries, make_partition_map(job, servers, {})}, listeners);
    target_ = router;
  }

  /// Pushes batches [from, to) of worker `index` and tells the parent of each push reply. `all`:
  /// number of batches of all workers.
  void push(std::uint32_t index, std::uint64_t from, std::uint64_t to, std::uint64_t all) {
    system_.spawn([=, this](caf::event_based_actor* self) {
      const auto next = std::make_shared<std::uint64_t>(from);
      for (std::uint64_t i = 0; i < pushes_open; ++i)
        push_next(self, index, next, to, all);
    });
  }

  pull_reply pull() {
    std::promise<pull_reply> found;
    system_.spawn([&](caf::event_based_actor* self) {
      pull_request what = kv_requests{counting_job(), 0, false}.whole();
      what.latest = true;
      self->request(target_, shard_request_end, request{{}, what})
        .then([&](reply& came) { found.set_value(*std::move(came.pulled)); },
              [&](const caf::error& why) {
                found.set_exception(
                  std::make_exception_ptr(std::runtime_error{from_caf(why).text}));
              });
    });
    return found.get_future().get();
  }

private:
  void push_next(caf::event_based_actor* self, std::uint32_t index,
                 const std::shared_ptr<std::uint64_t>& next, std::uint64_t to, std::uint64_t all) {
    if (*next >= to)
      return;
    const std::uint64_t turn = (*next)++, batch = turn * clients + index;
    push_request made;
    made.step = {{index}, first_start(index), {1}, {batch}, turn};
    made.tables = {{0}};
    made.pieces = {{{{0}, 0, floats}, gradient_of(batch, all)}};
    request asked{made, {}};
    if (turn % 2 == 0) // The reply is large as well.
      asked.pull = pull_request{made.step, false, {{{0}, 0, floats}}};
    self->request(target_, shard_request_end, std::move(asked))
      .then(
        [=, this](const reply& came) {
          parent_line().send({{"turn", turn}, {"repeated", came.pushed->duplicate}});
          push_next(self, index, next, to, all);
        },
        [](const caf::error& why) {
          parent_line().send({{"problem", from_caf(why).text}});
        });
  }

  actor_config config_;
  caf::actor_system system_{config_};
  process_links links_;
  kv target_;
};

// -- the process that breaks them ---------------------------------------------------------------

json part_for(const link_kind& kind, const kill_plan& plan, std::uint64_t seed) {
  return {{"part", "pushes"},
          {"kind", kind.name},
          {"certificates", plan.certificates.string()},
          {"seed", seed}};
}

json checked(json line) {
  if (const auto problem = line.find("problem"); problem != line.end())
    throw std::runtime_error{problem->get<std::string>()};
  return line;
}

/// The servers; each waits for orders to cut.
class shard_servers {
public:
  shard_servers(const link_kind& kind, const kill_plan& plan) {
    for (std::uint32_t i = 0; i < servers; ++i) {
      json part = part_for(kind, plan, plan.seed + i);
      part["server"] = i;
      processes_.push_back(std::make_unique<child>(part, no_environment));
      addresses_.push_back(checked(processes_.back()->line().receive()).at("address"));
    }
  }

  const std::vector<std::string>& addresses() const { return addresses_; }
  std::uint64_t cut(std::size_t i) {
    const std::scoped_lock lock{mutex_};
    processes_[i]->line().send({{"do", "cut"}});
    return processes_[i]->line().receive().at("cut");
  }

private:
  static inline const std::map<std::string, std::string> no_environment;

  std::mutex mutex_;
  std::vector<std::unique_ptr<child>> processes_;
  std::vector<std::string> addresses_;
};

/// One client through all its restarts. One thread has to own it, because a child ends with the
/// thread that made it.
class broken_client {
public:
  broken_client(const link_kind& kind, const kill_plan& plan, std::uint32_t index,
                std::uint64_t breaks, shard_servers& shards)
      : kind_(kind), plan_(plan), index_(index), breaks_left_(breaks), shards_(shards),
        dice_(plan.seed + 100 + index), acknowledged_(turns_of(plan.rounds)) {}

  /// Returns the number of batches of one client.
  static std::uint64_t turns_of(std::uint64_t rounds) {
    return acknowledged_per_break * (rounds / clients + 2);
  }

  void run() {
    start();
    while (first_unknown() < acknowledged_.size()) {
      const auto line = checked(process_->line().receive());
      if (line.contains("cut")) {
        figures.client_cuts += line.at("cut").get<std::uint64_t>();
        cutting_ = false;
        continue;
      }
      figures.repeated += line.at("repeated").get<bool>() ? 1 : 0;
      acknowledged_[line.at("turn")] = true;
      if (++since_break_ >= next_break_ && breaks_left_ > 0 && !cutting_)
        break_something();
    }
  }

  push_figures figures;

private:
  std::uint64_t first_unknown() const {
    return static_cast<std::uint64_t>(std::ranges::find(acknowledged_, false)
                                      - acknowledged_.begin());
  }

  void start() {
    json part = part_for(kind_, plan_, dice_());
    const std::uint64_t unknown = first_unknown();
    part.update({{"client", index_},
                 {"servers", shards_.addresses()},
                 {"from", unknown - std::min(unknown, pushes_open)},
                 {"to", acknowledged_.size()},
                 {"all", acknowledged_.size() * clients}});
    process_.reset(); // The old one ends before the new one starts.
    process_ = std::make_unique<child>(part, std::map<std::string, std::string>{});
  }

  void break_something() {
    --breaks_left_;
    since_break_ = 0;
    next_break_ = 1 + dice_() % acknowledged_per_break;
    const double now = seconds_now(),
                 end = now + std::uniform_real_distribution{0.0, break_delay_max}(dice_);
    wait_until([end] { return seconds_now() >= end; });
    switch (breaks_left_ % 3) {
    case 0: ++figures.kills; return start();
    case 1: cutting_ = true; return process_->line().send({{"do", "cut"}});
    case 2: figures.server_cuts += shards_.cut(dice_() % servers);
    }
  }

  const link_kind& kind_;
  const kill_plan& plan_;
  const std::uint32_t index_;
  std::uint64_t breaks_left_;
  shard_servers& shards_;
  std::mt19937_64 dice_;
  std::vector<bool> acknowledged_;
  bool cutting_ = false; ///< It was told to cut and has not answered.
  std::uint64_t since_break_ = 0, next_break_ = 1;
  std::unique_ptr<child> process_;
};

[[noreturn]] void cut_on_order(std::uint64_t seed) {
  std::mt19937_64 dice{seed};
  for (;;)
    if (parent_line().receive().at("do") == "cut")
      parent_line().send({{"cut", cut_a_connection(dice, parent_line().descriptor())}});
}

[[noreturn]] void serve(const link_kind& kind, const kill_plan& plan, std::uint32_t index) {
  const auto job = counting_job();
  actor_config config;
  caf::actor_system system{config};
  process_links links{
    system, shard_greeting(server_identity(index)), {}, options_of(kind, plan.certificates)};
  const auto listening = links.listen({"127.0.0.1", 0});
  if (!listening)
    throw std::runtime_error{listening.error().text};
  const auto address = to_string(*listening);
  links.serve_values(spawn_serving(system, job, index, address));
  parent_line().send({{"address", address}});
  cut_on_order(plan.seed);
}

} // namespace

push_figures break_pushes(const link_kind& kind, const kill_plan& plan) {
  push_figures found;
  found.kind = kind.name;
  shard_servers shards{kind, plan};
  const double begin = seconds_now();
  {
    std::vector<std::unique_ptr<broken_client>> all;
    std::vector<std::future<void>> ends;
    for (std::uint32_t i = 0; i < clients; ++i) {
      all.push_back(std::make_unique<broken_client>(
        kind, plan, i, (plan.rounds + clients - 1 - i) / clients, shards));
      ends.push_back(std::async(std::launch::async, [one = all.back().get()] { one->run(); }));
    }
    for (std::uint32_t i = 0; i < clients; ++i) {
      try {
        ends[i].get();
      } catch (const std::exception& problem) {
        found.problems.emplace_back(problem.what());
      }
      const auto& of = all[i]->figures;
      found.kills += of.kills;
      found.client_cuts += of.client_cuts;
      found.server_cuts += of.server_cuts;
      found.repeated += of.repeated;
    }
  }
  found.seconds = seconds_now() - begin;
  found.pushes = broken_client::turns_of(plan.rounds) * clients;
  count(shard_client{kind, plan, 0, shards.addresses()}.pull(), found.pushes, found);
  return found;
}

int play_push_part(const json& part) {
  const auto& kind = kind_named(part.at("kind"));
  const kill_plan plan{0, part.at("seed"), part.at("certificates").get<std::string>()};
  try {
    if (part.contains("server"))
      serve(kind, plan, part.at("server"));
    shard_client self{kind, plan, part.at("client"), part.at("servers")};
    self.push(part.at("client"), part.at("from"), part.at("to"), part.at("all"));
    cut_on_order(plan.seed);
  } catch (const std::exception& problem) {
    parent_line().send({{"problem", problem.what()}});
  }
  return 0;
}

} // namespace troupe::bench
