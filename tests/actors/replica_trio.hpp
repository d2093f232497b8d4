// A chain of two replicas and a third server.
#pragma once

#include "tests/actors/replica_fixture.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::test {

/// Three servers, the first two of which found the chain. Messages go where the test sends them.
struct trio {
  explicit trio(std::vector<consistency> modes = {asp()}, replica_options options = {})
      : job(job_of(modes)), head(job, server(0), true, options),
        tail(job, server(1), true, options), third(job, server(2), false, options) {
    for (auto* x : all())
      x->list({member(0), member(1)});
    become(config_of(1, {server(0), server(1)}));
  }

  std::vector<replica_node*> all() { return {&head, &tail, &third}; }

  void become(const chain_config& config) {
    for (auto* x : all())
      x->reconcile({config, 0, std::nullopt});
  }
  void renew() {
    for (auto* x : all())
      x->decide.renew(x->now);
  }
  void pass(std::chrono::milliseconds time) {
    for (auto* x : all())
      x->now += time;
    for (auto* x : all())
      x->tick();
  }

  /// Delivers sent messages until no more are sent.
  void deliver() {
    for (bool any = true; any;) {
      any = false;
      for (auto* from : all())
        for (; !from->sent.empty(); any = true) {
          const sent_message what = std::move(from->sent.front());
          from->sent.pop_front();
          all().at(what.to.index)->receive(what);
        }
    }
  }

  void push(replica_node& to, std::uint64_t token, std::uint32_t worker, std::uint64_t batch,
            std::uint64_t clock = 0) {
    to.push(token, gradient_of(job, worker, batch, clock));
  }

  job_spec job;
  replica_node head, tail, third;
};

} // namespace troupe::test
