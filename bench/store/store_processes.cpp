#include "bench/store/store_processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace troupe::bench {

namespace {

json to_json(const store_load& what) {
  return {{"bytes", what.bytes},
          {"window", what.window},
          {"workers", what.workers},
          {"servers", what.servers},
          {"sparse_rows", what.sparse_rows},
          {"memory_cap_bytes", what.memory_cap_bytes}};
}

store_load load_of(const json& from) {
  return {from.at("bytes"),   from.at("window"),      from.at("workers"),
          from.at("servers"), from.at("sparse_rows"), from.at("memory_cap_bytes")};
}

json answer(child& from) {
  auto found = from.line().receive();
  if (const auto problem = found.find("problem"); problem != found.end())
    throw std::runtime_error{problem->get<std::string>()};
  return found;
}

double megabytes_of(const std::vector<std::unique_ptr<child>>& processes) {
  double sum = 0;
  for (const auto& x : processes)
    sum += peak_megabytes(x->pid());
  return sum;
}

json run_operations(store_client& self, const json& order, std::size_t window) {
  round_trips trips{order.at("count"), window};
  const double begin = seconds_now();
  self.run(static_cast<operation>(order.at("operation").get<int>()), trips);
  return {{"begin", begin}, {"end", seconds_now()}, {"trips", trips.seconds()}};
}

json flood(store_client& self, const json& order) {
  const double begin = seconds_now();
  const auto report = [begin](const flood_counters& so_far) {
    parent_line().send({{"seconds", seconds_now() - begin},
                        {"resident_mb", resident_megabytes(getpid())},
                        {"made", so_far.made},
                        {"acknowledged", so_far.acknowledged},
                        {"refused", so_far.refused}});
  };
  self.flood(std::chrono::milliseconds{order.at("interval_ms").get<int>()},
             std::chrono::seconds{order.at("seconds").get<int>()}, report);
  return {{"end", true}};
}

[[noreturn]] void play_client(store_client& self, std::size_t window) {
  parent_line().send({{"ready", true}});
  for (;;) {
    const auto order = parent_line().receive();
    const std::string what = order.at("do");
    if (what == "run")
      parent_line().send(run_operations(self, order, window));
    else if (what == "probe")
      parent_line().send({{"trips", self.probe(order.at("pushes"), order.at("count"))}});
    else
      parent_line().send(flood(self, order));
  }
}

} // namespace

store_processes::store_processes(const store_contestant& who, const store_load& what) {
  json part{{"name", who.name}, {"load", to_json(what)}};
  std::vector<std::string> addresses;
  for (std::uint32_t i = 0; i < what.servers; ++i) {
    part["server"] = i;
    servers_.push_back(std::make_unique<child>(part, who.environment));
    addresses.push_back(answer(*servers_.back()).at("address"));
  }
  part.erase("server");
  part["servers"] = addresses;
  for (std::uint32_t i = 0; i < what.workers; ++i) {
    part["client"] = i;
    clients_.push_back(std::make_unique<child>(part, who.environment));
    answer(*clients_.back());
  }
}

store_run store_processes::run(operation what, std::size_t count) {
  const double cpu_before = cpu_of_all();
  for (const auto& x : clients_)
    x->line().send({{"do", "run"}, {"operation", static_cast<int>(what)}, {"count", count}});
  store_run found;
  double begin = 0, end = 0;
  for (const auto& x : clients_) {
    const auto one = answer(*x);
    const double one_began = one.at("begin");
    begin = begin == 0 ? one_began : std::min(begin, one_began);
    end = std::max(end, one.at("end").get<double>());
    for (const double seconds : one.at("trips"))
      found.trips.push_back(seconds);
  }
  found.seconds = end - begin;
  found.cpu_seconds = cpu_of_all() - cpu_before;
  return found;
}

std::vector<double> store_processes::probe(std::size_t pushes, std::size_t count) {
  clients_[0]->line().send({{"do", "probe"}, {"pushes", pushes}, {"count", count}});
  return answer(*clients_[0]).at("trips");
}

void store_processes::flood(std::chrono::milliseconds interval, std::chrono::seconds duration,
                            const std::function<void(const json&)>& report) {
  clients_[0]->line().send(
    {{"do", "flood"}, {"interval_ms", interval.count()}, {"seconds", duration.count()}});
  for (auto line = answer(*clients_[0]); !line.contains("end"); line = answer(*clients_[0]))
    report(line);
}

double store_processes::clients_megabytes() const { return megabytes_of(clients_); }

double store_processes::servers_megabytes() const { return megabytes_of(servers_); }

double store_processes::cpu_of_all() const {
  double sum = 0;
  for (const auto* group : {&servers_, &clients_})
    for (const auto& x : *group)
      sum += cpu_seconds(x->pid());
  return sum;
}

int play_store_part(const json& part, const std::vector<store_contestant>& all) {
  const std::string name = part.at("name");
  const auto who = std::ranges::find(all, name, &store_contestant::name);
  const auto what = load_of(part.at("load"));
  try {
    if (part.contains("server")) {
      const auto self = who->make_server(what, part.at("server"));
      parent_line().send({{"address", self->address()}});
      self->serve();
    } else {
      const auto self = who->make_client(what, part.at("client"), part.at("servers"));
      play_client(*self, what.window);
    }
  } catch (const std::exception& problem) {
    parent_line().send({{"problem", problem.what()}});
  }
  return 0;
}

} // namespace troupe::bench
