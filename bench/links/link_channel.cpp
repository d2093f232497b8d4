// Channels as contestants of links_bench: a parcel goes from an `out` port to an `in` port of
// another process, and an empty one comes back. Both run on the threads of the ports' owners.
#include "bench/links/channel_member.hpp"
#include "bench/links/link_contest.hpp"
#include "serialization/channel.hpp"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <future>
#include <optional>

namespace troupe::bench {

namespace {

constexpr std::uint64_t no_number = ~std::uint64_t{0};

std::size_t lane_window(const load& what) {
  // Answers come before credit, so a window of the contest alone would wait for both.
  return std::clamp<std::size_t>(2 * what.window, channel_window_default, channel_window_max);
}

class channel_receiver final : public receiver {
public:
  channel_receiver(const load& what, const transport_options& how)
      : read_(what), member_(
                       1,
                       {bench_end("data", false, {0}, lane_window(what)),
                        bench_end("back", true, {0}, lane_window(what))},
                       how, [this](port_room& room) { bind(room); }, [] {}) {}

  std::string address() const override { return member_.address(); }
  void serve() override {
    for (;;)
      pause();
  }

private:
  void bind(port_room& room) {
    data_.emplace("data");
    back_.emplace("back");
    data_->take = [this](parcel<bench_head>&& what) { answer(what); };
    back_->writable = [this](std::uint32_t) { send_answers(); };
    room.bind(0, *data_);
    room.bind(1, *back_);
  }

  void answer(const parcel<bench_head>& what) {
    if (what.head.number == no_number)
      return member_.listed(0, "127.0.0.1:" + std::to_string(what.head.port));
    answers_.push_back({what.head.number, read_(what.tensors.at(0).values().data()), 0});
    send_answers();
  }

  /// The first parcel may come before this end of `back` has heard of its session.
  void send_answers() {
    while (!answers_.empty() && back_->send({answers_.front()}, 0))
      answers_.pop_front();
  }

  payload_reader read_;
  std::deque<bench_head> answers_;
  std::optional<in<bench_head>> data_;
  std::optional<out<bench_head>> back_;
  channel_member member_;
};

class channel_sender final : public sender {
public:
  channel_sender(const load& what, const transport_options& how, const std::string& address)
      : what_(what), from_(what),
        member_(
          0,
          {bench_end("data", true, {1}, lane_window(what)),
           bench_end("back", false, {1}, lane_window(what))},
          how, [this](port_room& room) { bind(room); }, [this] { send_more(); }) {
    member_.listed(1, address);
    joined_.get_future().wait();
  }

  void run(round_trips& trips) override {
    std::promise<void> all;
    trips_ = &trips;
    done_ = &all;
    answered_ = 0;
    member_.step(); // The thread of the ports does the rest.
    all.get_future().wait();
  }

private:
  void bind(port_room& room) {
    data_.emplace("data");
    back_.emplace("back");
    data_->joined = [this](std::uint32_t) { introduce(); };
    data_->writable = [this](std::uint32_t) { send_more(); };
    back_->joined = [this](std::uint32_t) { joined_.set_value(); };
    back_->take = [this](parcel<bench_head>&& what) { take(what.head); };
    room.bind(0, *data_);
    room.bind(1, *back_);
  }

  /// Tells the receiver where answers go.
  void introduce() {
    const auto port = parse_endpoint(member_.address())->port;
    if (!data_->send({{no_number, 0, port}}, 0))
      _exit(1);
  }

  void take(const bench_head& answer) {
    trips_->end(answered_);
    from_.check_answer(answered_++, answer.sum);
    if (trips_->done())
      done_->set_value();
    else
      send_more();
  }

  void send_more() {
    while (trips_->may_send()) {
      if (!data_->ready(0)) { // `writable` follows a send() that was refused.
        (void)data_->send({{no_number, 0, 0}}, 0);
        return;
      }
      const auto number = trips_->begin();
      parcel<bench_head> next{.head = {number, 0, 0}};
      next.tensors.emplace_back(from_.at(number), what_.bytes / sizeof(float));
      if (!data_->send(next, 0))
        _exit(1);
    }
  }

  load what_;
  payloads from_;
  std::promise<void> joined_;
  round_trips* trips_ = nullptr;
  std::size_t answered_ = 0;
  std::promise<void>* done_ = nullptr;
  std::optional<out<bench_head>> data_;
  std::optional<in<bench_head>> back_;
  channel_member member_;
};

contestant channel_contestant(const std::string& name, const std::string& about,
                              const transport_options& how) {
  return {name,
          about,
          [how](const load& what) { return std::make_unique<channel_receiver>(what, how); },
          [how](const load& what, const std::string& address) {
            return std::make_unique<channel_sender>(what, how, address);
          },
          {}};
}

} // namespace

std::vector<contestant> channel_contestants() {
  transport_options tcp;
  tcp.unix_sockets = false;
  return {channel_contestant("channel", "parcels of a channel from port to port, by default", {}),
          channel_contestant("channel-tcp", "the same over TCP", tcp)};
}

} // namespace troupe::bench
