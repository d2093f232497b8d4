// Troupe as a contestant of push_pull: a shard with SGD behind a gateway, and a worker's kv in
// another process. The client is an actor that sends the next request when a reply comes.
#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "bench/checksum.hpp"
#include "bench/store/random_keys.hpp"
#include "bench/store/server_host.hpp"
#include "bench/store/store_contest.hpp"
#include "bench/store/transport_kinds.hpp"
#include "serialization/layout.hpp"
#include "serialization/wire.hpp"

#include "caf/send.hpp"

#include <unistd.h>

#include <cstdlib>
#include <future>
#include <stdexcept>

namespace troupe::bench {

/// The next task of the client's actor.
using task = std::function<void(caf::event_based_actor*)>;

} // namespace troupe::bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::task)

namespace troupe::bench {

namespace {

enum class way { remote, lists, router };

/// Tells the children the folder of write_certificates().
constexpr const char* certificates_variable = "TROUPE_BENCH_CERTIFICATES";

transport_options options_of(const std::string& kind) {
  const char* const certificates = std::getenv(certificates_variable);
  return options_of(kind_named(kind), certificates == nullptr ? "" : certificates);
}

hello hello_of(const job_spec& job, const member_id& who) {
  return {wire::protocol_version, fingerprint(job), 0, who};
}

job_spec job_of(const store_load& what) {
  if (what.sparse_rows > 0)
    return sparse_table_job(sparse_width, what.workers, what.servers);
  return one_table_job(what.bytes / sizeof(float), what.workers, what.servers);
}

kv_requests requests_of(const store_load& what, std::uint32_t index, way how) {
  if (what.sparse_rows == 0)
    return {job_of(what), index, how != way::router};
  std::vector<row_keys> lists;
  for (std::size_t i = 0; i < sparse_key_lists; ++i)
    lists.push_back(random_keys(sparse_width, what.sparse_rows,
                                what.bytes / sizeof(float) / sparse_width,
                                index * sparse_key_lists + i));
  return {job_of(what), index, std::move(lists)};
}

/// Limits the memory of pushes that wait in a client for a server.
send_limits limits_of(const store_load& what) {
  send_limits made;
  if (what.memory_cap_bytes > 0)
    made.memory_bytes = what.memory_cap_bytes;
  return made;
}

class troupe_server final : public store_server {
public:
  troupe_server(const store_load& what, std::uint32_t index, const std::string& kind)
      : job_(job_of(what)),
        links_(system_, hello_of(job_, server_identity(index)), {}, options_of(kind)) {
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
  process_links links_;
  std::string address_;
};

class troupe_client final : public store_client {
public:
  troupe_client(const store_load& what, std::uint32_t index,
                const std::vector<std::string>& servers, way how, const std::string& kind)
      : job_(job_of(what)), from_(what), requests_(requests_of(what, index, how)),
        links_(system_, hello_of(job_, {role::worker, index, first_start(index)}), {},
               options_of(kind), limits_of(what)) {
    std::vector<chain_entry> entries;
    std::vector<member_address> listeners;
    for (std::uint32_t i = 0; i < servers.size(); ++i) {
      entries.push_back({{i}, server_identity(i), true});
      listeners.push_back({server_identity(i), servers[i]});
    }
    if (how != way::router) {
      const auto remote = links_.to_servers()(listeners.at(0));
      target_ = remote;
      if (how == way::lists)
        listed_ = remote;
    } else {
      const auto router = spawn_router(system_, job_, links_.to_servers());
      caf::anon_send(router, view_atom_v,
                     view{{1}, {1}, entries, make_partition_map(job_, job_.servers, {})},
                     listeners);
      target_ = router;
    }
    driver_ = system_.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[self](const task& next) { next(self); },
              [this, self](answer_list& came) { take(self, came); }};
    });
  }

  void run(operation what, round_trips& trips) override {
    what_ = what;
    trips_ = &trips;
    wait_for([&](caf::event_based_actor* self) {
      if (listed_)
        send_list(self);
      else
        send_more(self, what, trips);
    });
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
  /// Runs a task on the actor, which calls end() when all is done.
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
      auto next = next_request(what, number);
      ask(self, target_, std::move(next.push), std::move(next.pull),
          [this, self, what, number, &trips](const kv_answer& answer) {
            must_not_fail(answer);
            read(answer.pulled);
            trips.end(number);
            if (trips.done())
              end();
            else
              send_more(self, what, trips);
          });
    }
  }

  request next_request(operation what, std::size_t number) {
    request made;
    if (what != operation::pull)
      made.push = requests_.next_push(from_.at(number));
    if (what != operation::push)
      made.pull = requests_.whole();
    return made;
  }

  void read(const pull_reply& pulled) {
    for (const auto& x : pulled.pieces)
      sum_ += checksum(x.values.get(), x.where.count * sizeof(float));
    for (const auto& x : pulled.rows)
      sum_ += checksum(x.values.get(), x.where.floats() * sizeof(float));
  }

  /// Sends all requests that may be sent as one message.
  void send_list(caf::event_based_actor* self) {
    request_list list;
    while (trips_->may_send()) {
      const auto number = trips_->begin();
      list.items.push_back({number, next_request(what_, number)});
    }
    if (!list.items.empty())
      self->send(listed_, std::move(list), caf::actor_cast<answer_sink>(self));
  }

  void take(caf::event_based_actor* self, answer_list& what) {
    for (const auto& each : what.items) {
      const auto* came = std::get_if<reply_message>(&each);
      if (came == nullptr)
        return must_not_fail({std::get<failure_message>(each).what, {}});
      if (came->what.pulled)
        read(*came->what.pulled);
      trips_->end(came->number);
    }
    if (trips_->done())
      end();
    else
      send_list(self);
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
  process_links links_;
  kv target_;
  kv_service listed_; ///< Takes requests as lists.
  operation what_ = operation::push;
  round_trips* trips_ = nullptr;
  caf::actor driver_;
  std::promise<void> ended_;
  std::uint64_t sum_ = 0; ///< Sum of the pulled floats: adding up reads them.
  std::size_t pushes_open_ = 0;
  flood_counters counters_;
  double reported_ = 0;
};

store_contestant troupe_contestant(const std::string& name, const std::string& about,
                                   std::uint32_t servers_max, way how, const std::string& kind) {
  return {name,
          about,
          servers_max,
          [kind](const store_load& what, std::uint32_t index) {
            return std::make_unique<troupe_server>(what, index, kind);
          },
          [how, kind](const store_load& what, std::uint32_t index,
                      const std::vector<std::string>& servers) {
            return std::make_unique<troupe_client>(what, index, servers, how, kind);
          },
          {}};
}

} // namespace

std::vector<store_contestant> troupe_stores(const std::filesystem::path& certificates) {
  std::vector<store_contestant> all{
    troupe_contestant("troupe", "a worker's kv: the router, in front of all servers", 256,
                      way::router, "arena"),
    troupe_contestant("troupe-remote", "the kv of one server alone", 1, way::remote, "arena"),
    troupe_contestant("troupe-lists", "the same; what is sent at a time is one message", 1,
                      way::lists, "arena"),
    troupe_contestant("troupe-tcp", "troupe-remote over TCP", 1, way::remote, "tcp"),
    troupe_contestant("troupe-tls", "troupe-remote over TLS", 1, way::remote, "tls")};
  all.back().environment = {{certificates_variable, certificates.string()}};
  return all;
}

} // namespace troupe::bench
