// Troupe's own: a shard with SGD behind a gateway, and a worker's kv in another process. The client
// is an actor that sends the next request when an answer comes.
#include "actors/graph/actor_config.hpp"
#include "actors/links/node.hpp"
#include "actors/store/router_actor.hpp"
#include "bench/checksum.hpp"
#include "bench/server_host.hpp"
#include "bench/store_contest.hpp"
#include "serialization/layout.hpp"
#include "serialization/wire.hpp"

#include "caf/send.hpp"

#include <unistd.h>

#include <future>
#include <stdexcept>

namespace troupe::bench {

/// What the client's actor is to do next.
using task = std::function<void(caf::event_based_actor*)>;

} // namespace troupe::bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::task)

namespace troupe::bench {

namespace {

enum class way { remote, router };

hello hello_of(const job_spec& job, const member_id& who) {
  return {wire::protocol_version, fingerprint(job), 0, who};
}

job_spec job_of(const store_load& what) {
  return one_table_job(what.bytes / sizeof(float), what.workers, what.servers);
}

/// A client may hold so much of what waits for a server.
transport_options options_of(const store_load& what) {
  transport_options made;
  if (what.memory_cap_bytes > 0)
    made.queue_bytes_max = what.memory_cap_bytes;
  return made;
}

class troupe_server final : public store_server {
public:
  troupe_server(const store_load& what, std::uint32_t index)
      : job_(job_of(what)), links_(system_, hello_of(job_, server_identity(index))) {
    const auto listening = links_.listen({"127.0.0.1", 0});
    if (!listening)
      throw std::runtime_error{listening.error().text};
    address_ = to_string(*listening);
    links_.serve_values(spawn_serving(system_, job_, index, address_));
  }

  std::string address() const override { return address_; }
  void serve() override {
    for (;;)
      pause();
  }

private:
  job_spec job_;
  actor_config config_;
  caf::actor_system system_{config_};
  node links_;
  std::string address_;
};

class troupe_client final : public store_client {
public:
  troupe_client(const store_load& what, std::uint32_t index,
                const std::vector<std::string>& servers, way how)
      : job_(job_of(what)), from_(what), requests_(job_, index, how == way::remote),
        links_(system_, hello_of(job_, {role::worker, index, first_start(index)}), {},
               options_of(what)) {
    std::vector<server_entry> entries;
    for (std::uint32_t i = 0; i < servers.size(); ++i)
      entries.push_back({{i}, server_identity(i).incarnation, servers[i], true});
    if (how == way::remote) {
      target_ = links_.to_servers()(entries.at(0));
    } else {
      const auto router = spawn_router(system_, job_, links_.to_servers());
      caf::anon_send(router, view_atom_v,
                     view{{1}, {1}, entries, make_partition_map(job_, job_.servers, {})});
      target_ = router;
    }
    driver_ = system_.spawn([](caf::event_based_actor* self) -> caf::behavior {
      return {[self](const task& next) { next(self); }};
    });
  }

  void run(operation what, round_trips& trips) override {
    wait_for([&](caf::event_based_actor* self) { send_more(self, what, trips); });
  }

  std::vector<double> probe(std::size_t pushes, std::size_t count) override {
    std::vector<double> seconds;
    pushes_open_ = pushes;
    wait_for([&, pushes](caf::event_based_actor* self) {
      for (std::size_t i = 0; i < pushes; ++i)
        ask(self, target_, requests_.next_push(from_.at(i)), {}, [this](const kv_answer& answer) {
          must_not_fail(answer);
          --pushes_open_;
        });
      pull_one(self, seconds, count, pushes > 0);
    });
    return seconds;
  }

  void flood(std::chrono::milliseconds interval, std::chrono::seconds duration,
             std::function<void(const flood_counters&)> report) override {
    counters_ = {};
    const double begin = seconds_now();
    wait_for([&](caf::event_based_actor* self) {
      push_on(self, interval, begin, static_cast<double>(duration.count()), report);
    });
  }

private:
  /// Runs on the actor, which says end() when all is done.
  void wait_for(task what) {
    ended_ = {};
    caf::anon_send(driver_, std::move(what));
    ended_.get_future().get();
  }
  void end() { ended_.set_value(); }

  static void must_not_fail(const kv_answer& answer) {
    if (!answer.failed)
      return;
    parent_line().send({{"problem", answer.failed->text}});
    _exit(1);
  }

  void send_more(caf::event_based_actor* self, operation what, round_trips& trips) {
    while (trips.may_send()) {
      const auto number = trips.begin();
      std::optional<update> push;
      std::optional<query> pull;
      if (what != operation::pull)
        push = requests_.next_push(from_.at(number));
      if (what != operation::push)
        pull = requests_.whole();
      ask(self, target_, std::move(push), std::move(pull),
          [this, self, what, number, &trips](const kv_answer& answer) {
            must_not_fail(answer);
            for (const auto& x : answer.pulled.pieces)
              sum_ += checksum(x.values.get(), x.where.count * sizeof(float));
            trips.end(number);
            if (trips.done())
              end();
            else
              send_more(self, what, trips);
          });
    }
  }

  void pull_one(caf::event_based_actor* self, std::vector<double>& seconds, std::size_t count,
                bool while_pushing) {
    if (seconds.size() == count || (while_pushing && pushes_open_ == 0))
      return end_after_pushes(self);
    const double begin = seconds_now();
    ask(self, target_, {}, requests_.first_element(),
        [this, self, &seconds, count, while_pushing, begin](const kv_answer& answer) {
          must_not_fail(answer);
          seconds.push_back(seconds_now() - begin);
          pull_one(self, seconds, count, while_pushing);
        });
  }

  void end_after_pushes(caf::event_based_actor* self) {
    if (pushes_open_ == 0)
      return end();
    self->delayed_send(self, std::chrono::milliseconds{1},
                       task{[this](caf::event_based_actor* me) { end_after_pushes(me); }});
  }

  void push_on(caf::event_based_actor* self, std::chrono::milliseconds interval, double begin,
               double seconds, const std::function<void(const flood_counters&)>& report) {
    const double passed = seconds_now() - begin;
    if (passed >= reported_ + 1) {
      reported_ = static_cast<double>(static_cast<int>(passed));
      report(counters_);
    }
    if (passed >= seconds)
      return end();
    ++counters_.made;
    ask(self, target_, requests_.next_push(from_.fresh()), {}, [this](const kv_answer& answer) {
      ++(answer.failed ? counters_.refused : counters_.acknowledged);
    });
    self->delayed_send(self, interval, task{[this, interval, begin, seconds, &report](auto* me) {
                         push_on(me, interval, begin, seconds, report);
                       }});
  }

  job_spec job_;
  gradients from_;
  kv_requests requests_;
  actor_config config_;
  caf::actor_system system_{config_};
  node links_;
  kv target_;
  caf::actor driver_;
  std::promise<void> ended_;
  std::uint64_t sum_ = 0; ///< Of what was pulled; who adds it up has read it.
  std::size_t pushes_open_ = 0;
  flood_counters counters_;
  double reported_ = 0;
};

store_contestant of(const std::string& name, const std::string& about, std::uint32_t servers_max,
                    way how) {
  return {
    name,
    about,
    servers_max,
    [](const store_load& what, std::uint32_t index) {
      return std::make_unique<troupe_server>(what, index);
    },
    [how](const store_load& what, std::uint32_t index, const std::vector<std::string>& servers) {
      return std::make_unique<troupe_client>(what, index, servers, how);
    },
    {}};
}

} // namespace

std::vector<store_contestant> troupe_stores() {
  return {of("troupe", "a worker's kv: the router, in front of all servers", 256, way::router),
          of("troupe-remote", "the kv of one server alone", 1, way::remote)};
}

} // namespace troupe::bench
