#include "actors/training/port_room.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <map>
#include <stdexcept>
#include <thread>

namespace troupe::port_room_threads_test {
namespace {

using namespace std::chrono_literals;

struct numbered {
  std::uint64_t number = 0;
};

const member_id sender_id{role::actor, 0, {11}}, receiver_id{role::actor, 1, {12}};

channel_end end_of(bool sends, std::uint32_t window) {
  return {"players>keepers", "", sends, "u64", {{role::actor, sends ? 1u : 0u, {}}}, window};
}

/// Carries messages between two rooms, on a thread of its own, in order.
class network {
public:
  ~network() { stop(); }

  void begin(port_room& sender, port_room& receiver) {
    sides_[0].room = &sender;
    sides_[1].room = &receiver;
    thread_ = std::thread{[this] { run(); }};
  }
  void stop() {
    {
      const std::lock_guard lock{mutex_};
      is_over_ = true;
    }
    came_.notify_all();
    if (thread_.joinable())
      thread_.join();
  }

  /// Does work on the network's thread.
  void post(std::function<void()> work) {
    {
      const std::lock_guard lock{mutex_};
      work_.push_back(std::move(work));
    }
    came_.notify_all();
  }

  /// The links of one of the two rooms. There is at most one link at a time.
  class side final : public lane_links {
  public:
    side(network& all, std::size_t here) : all_(&all), here_(here) {}

    void connect(lane_link link, const member_address&) override {
      all_->post([this, link] {
        all_->sides_[here_].link = link;
        auto& other = all_->sides_[1 - here_];
        other.link = other.room->accepted(sender_id);
        all_->sides_[here_].room->opened(link);
      });
    }
    void send(lane_link, channel_message what) override {
      all_->post([this, what = std::move(what)] {
        auto& other = all_->sides_[1 - here_];
        other.room->received(other.link, what);
      });
    }
    void refuse(lane_link, const failure& why) override {
      all_->post([this, why] {
        auto& other = all_->sides_[1 - here_];
        other.room->closed(other.link, why);
      });
    }
    void close(lane_link) override {}

  private:
    network* all_;
    std::size_t here_;
  };

  /// Breaks the link.
  void cut() {
    post([this] {
      for (auto& each : sides_)
        each.room->closed(each.link, std::nullopt);
    });
  }

private:
  struct end {
    port_room* room = nullptr;
    lane_link link;
  };

  void run() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock{mutex_};
        came_.wait(lock, [this] { return is_over_ || !work_.empty(); });
        if (is_over_)
          return;
        next = std::move(work_.front());
        work_.pop_front();
      }
      next();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> work_;
  bool is_over_ = false;
  end sides_[2];
  std::thread thread_;
};

/// Two members, and one lane from the first to the second.
struct fixture {
  explicit fixture(std::uint32_t window = 4)
      : sender(sender_id, {end_of(true, window)}), receiver(receiver_id, {end_of(false, window)}) {}
  ~fixture() { lines.stop(); }

  void begin(port_surroundings of_receiver = {}) {
    port_surroundings of_sender;
    of_sender.clock = of_receiver.clock = steady_now;
    sender.begin(std::move(of_sender), std::make_shared<network::side>(lines, 0));
    receiver.begin(std::move(of_receiver), std::make_shared<network::side>(lines, 1));
    sender.bind(0, seen);
    receiver.bind(0, came);
    lines.begin(sender, receiver);
    sender.listed({{receiver_id, "there"}});
  }

  /// Sends parcels with growing numbers until `count` of them went.
  void send(std::uint64_t count) {
    for (std::uint64_t done = 0; done < count;) {
      sender.deliver();
      if (seen.send({{next}, {std::vector<float>{static_cast<float>(next)}}}, 0)) {
        ++next;
        ++done;
      } else {
        sender.tick(); // It connects again after a cut.
        std::this_thread::yield();
      }
    }
  }

  port_room sender, receiver;
  out<numbered> seen{"seen"};
  in<numbered> came{"came"};
  std::uint64_t next = 0;
  network lines;
};

} // namespace

TEST_CASE("parcels of one thread reach another one in order, with their tensors") {
  constexpr std::uint64_t count = 2000;
  fixture both;
  std::uint64_t taken = 0;
  bool in_order = true;
  both.came.take = [&](parcel<numbered>&& one) {
    in_order = in_order && one.head.number == taken && one.from == 0 && one.tensors.size() == 1
               && one.tensors[0].values()[0] == static_cast<float>(taken);
    ++taken;
  };
  both.begin();
  std::thread program{[&] { both.send(count); }};
  while (taken < count) {
    both.receiver.deliver();
    std::this_thread::yield();
  }
  program.join();
  CHECK(in_order);
  const auto sent = both.sender.counters("players").front(),
             got = both.receiver.counters("keepers").front();
  CHECK(sent.port == "players.seen");
  CHECK(got.port == "keepers.came");
  CHECK(sent.parcels == count);
  CHECK(got.parcels == count);
  CHECK(got.bytes == count * (sizeof(numbered) + sizeof(float)));
}

TEST_CASE("links that break cost parcels at most, and each end hears of it") {
  fixture both{2};
  std::uint64_t taken = 0, lost = 0, joined = 0, last = 0;
  bool in_order = true;
  both.came.take = [&](parcel<numbered>&& one) {
    in_order = in_order && (taken == 0 || one.head.number > last);
    last = one.head.number;
    ++taken;
  };
  both.came.lost = [&](std::uint32_t) { ++lost; };
  both.came.joined = [&](std::uint32_t) { ++joined; };
  both.begin();
  std::atomic<bool> done{false};
  std::thread program{[&] {
    for (int i = 0; i < 6; ++i) {
      both.send(50);
      both.lines.cut();
    }
    both.send(50);
    done = true;
  }};
  while (!done) {
    both.receiver.deliver();
    std::this_thread::yield();
  }
  program.join();
  CHECK(in_order);
  CHECK(joined == lost + 1);
  CHECK(lost == 6);
  CHECK(taken >= 7 * 50 - 2 * lost - 2);
}

TEST_CASE("next() waits for a parcel, and keeps those that came before") {
  fixture both;
  both.begin();
  std::thread program{[&] { both.send(10); }};
  const auto first = both.came.next(5s);
  REQUIRE(first.has_value());
  CHECK(first->head.number == 0);
  both.receiver.deliver(); // Without `take`, parcels stay for next().
  for (std::uint64_t number = 1; number < 10; ++number) {
    const auto one = both.came.next(5s);
    REQUIRE(one.has_value());
    CHECK(one->head.number == number);
  }
  program.join();
  const auto before = both.receiver.waited();
  CHECK_FALSE(both.came.next(20ms).has_value());
  CHECK(both.receiver.waited() >= before + 20ms);
}

TEST_CASE("next() tells why it cannot wait") {
  fixture both;
  port_surroundings of_receiver;
  of_receiver.why_no_wait = "which virtual time cannot: use --threads";
  both.begin(std::move(of_receiver));
  CHECK_FALSE(both.came.may_wait());
  CHECK_THROWS_WITH_AS((void)both.came.next(1s),
                       "port 'came' waits for a parcel, which virtual time cannot: use --threads",
                       std::logic_error);
}

TEST_CASE("a port that takes parcels needs a callback where no one can wait for them") {
  fixture both;
  both.begin();
  CHECK_THROWS_WITH_AS(both.receiver.check_takes(), "port 'came' has no take: set it in start()",
                       std::invalid_argument);
  CHECK_NOTHROW(both.sender.check_takes());
  both.came.take = [](parcel<numbered>&&) {};
  CHECK_NOTHROW(both.receiver.check_takes());
}

TEST_CASE("a second ask for values is dropped until the first one is answered") {
  port_room room{receiver_id, {}};
  pulls model{"model"};
  std::vector<std::vector<std::vector<std::uint64_t>>> asked;
  port_surroundings around;
  around.clock = steady_now;
  around.ask = [&](std::vector<std::vector<std::uint64_t>> keys) { asked.push_back(keys); };
  room.begin(std::move(around), nullptr);
  room.bind_pulls(model);
  std::size_t taken = 0;
  model.take = [&](const_tensors all) { taken += all.size(); };
  model.ask();
  model.ask({{1, 2}});
  CHECK(asked == std::vector<std::vector<std::vector<std::uint64_t>>>{{}});
  const std::vector<float> values{1, 2};
  const std::vector<std::span<const float>> spans{values};
  room.values(spans);
  CHECK(taken == 1);
  model.ask({{1, 2}});
  CHECK(asked.size() == 2);
}

TEST_CASE("a callback that throws ends the delivery with its exception") {
  fixture both;
  both.came.take = [](parcel<numbered>&&) { throw std::runtime_error{"no more"}; };
  both.begin();
  both.send(1);
  std::string text;
  for (int i = 0; i < 1000 && text.empty(); ++i) {
    try {
      both.receiver.deliver();
      std::this_thread::sleep_for(1ms);
    } catch (const std::runtime_error& problem) {
      text = problem.what();
    }
  }
  CHECK(text == "no more");
}

} // namespace troupe::port_room_threads_test
