// CAF's own remote messages as a contestant: a block behind a reference count, which is copied as a
// whole and not float by float, with the best settings that were found.
#include "bench/links/link_contest.hpp"

#include "caf/actor_cast.hpp"
#include "caf/actor_system.hpp"
#include "caf/actor_system_config.hpp"
#include "caf/atom.hpp"
#include "caf/event_based_actor.hpp"
#include "caf/io/middleman.hpp"
#include "caf/send.hpp"
#include "caf/type_id.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <stdexcept>

namespace troupe::bench {

/// Immutable and shared.
struct caf_block {
  std::size_t size_bytes = 0;
  std::shared_ptr<const std::byte> bytes;
};

/// Returns the pool of arriving blocks, which are all of one size.
buffer_pool& arriving_blocks() {
  static buffer_pool pool;
  return pool;
}

caf::error inspect(caf::serializer& to, caf_block& what) {
  std::uint64_t size = what.size_bytes;
  if (auto failed = to(size))
    return failed;
  return to.apply_raw(size, const_cast<std::byte*>(what.bytes.get()));
}

caf::error inspect(caf::deserializer& from, caf_block& what) {
  std::uint64_t size = 0;
  if (auto failed = from(size))
    return failed;
  auto bytes = arriving_blocks().bytes(size);
  what = {size, bytes};
  return from.apply_raw(size, bytes.get());
}

} // namespace troupe::bench

CAF_BEGIN_TYPE_ID_BLOCK(links_bench, caf::first_custom_type_id)
  CAF_ADD_TYPE_ID(links_bench, (troupe::bench::caf_block))
CAF_END_TYPE_ID_BLOCK(links_bench)

namespace troupe::bench {

namespace {

struct caf_settings : caf::actor_system_config {
  caf_settings() {
    add_message_types<caf::id_block::links_bench>();
    load<caf::io::middleman>();
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", std::size_t{1});
    // A message is read where it arrives, without a copy for another thread.
    set("middleman.workers", std::size_t{0});
  }
};

class caf_receiver final : public receiver {
public:
  explicit caf_receiver(const load& what) : read_(what) {
    const auto server = system_.spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {[this](caf::put_atom, const caf_block& block) { return read_(block.bytes.get()); }};
    });
    const auto port = system_.middleman().publish(server, 0, "127.0.0.1");
    if (!port)
      throw std::runtime_error{"CAF cannot listen"};
    port_ = *port;
  }

  std::string address() const override { return std::to_string(port_); }
  void serve() override {
    for (;;)
      pause();
  }

private:
  payload_reader read_;
  caf_settings settings_;
  caf::actor_system system_{settings_};
  std::uint16_t port_ = 0;
};

class caf_sender final : public sender {
public:
  caf_sender(const load& what, const std::string& address) : what_(what), from_(what) {
    auto found =
      system_.middleman().remote_actor("127.0.0.1", static_cast<std::uint16_t>(std::stoi(address)));
    if (!found)
      throw std::runtime_error{"CAF cannot connect"};
    server_ = *found;
    client_ = system_.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](caf::ok_atom) { send_more(self); }};
    });
  }

  void run(round_trips& trips) override {
    std::promise<void> all;
    trips_ = &trips;
    answered_ = 0;
    done_ = &all;
    caf::anon_send(client_, caf::ok_atom_v);
    all.get_future().wait();
  }

private:
  void send_more(caf::event_based_actor* self) {
    while (trips_->may_send()) {
      const auto values = from_.at(trips_->begin());
      const caf_block block{what_.bytes,
                            {values, reinterpret_cast<const std::byte*>(values.get())}};
      self->request(server_, std::chrono::minutes{1}, caf::put_atom_v, block)
        .then([this, self](std::uint64_t answer) { take(self, answer); },
              [](const caf::error&) {
                std::fprintf(stderr, "no answer from CAF\n");
                _exit(1);
              });
    }
  }

  void take(caf::event_based_actor* self, std::uint64_t answer) {
    trips_->end(answered_);
    from_.check_answer(answered_++, answer);
    if (trips_->done())
      done_->set_value();
    else
      send_more(self);
  }

  load what_;
  payloads from_;
  caf_settings settings_;
  caf::actor_system system_{settings_};
  caf::actor server_, client_;
  round_trips* trips_ = nullptr;
  std::size_t answered_ = 0;
  std::promise<void>* done_ = nullptr;
};

} // namespace

std::vector<contestant> caf_contestants() {
  return {{"caf",
           "CAF's remote messages, a block behind a reference count",
           [](const load& what) { return std::make_unique<caf_receiver>(what); },
           [](const load& what, const std::string& address) {
             return std::make_unique<caf_sender>(what, address);
           },
           {}}};
}

} // namespace troupe::bench
