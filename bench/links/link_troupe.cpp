// Troupe's links as contestants of links_bench: the messages of actors/transport/transport.hpp,
// without actors. The next payload leaves from where the answer to an earlier one arrived.
#include "actors/transport/transport.hpp"
#include "bench/links/link_contest.hpp"
#include "serialization/wire.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace troupe::bench {

namespace {

hello greeting(role as) { return {wire::protocol_version, 1, 0, {as, 0, {}}}; }

message request_of(std::uint64_t number, std::shared_ptr<const float> values, std::size_t floats) {
  push_request push;
  push.tables = {{0}};
  push.pieces = {{{{0}, 0, floats}, std::move(values)}};
  return request_message{number, {std::move(push), {}}};
}

/// Runs calls one after the other: on a thread of its own, or at once.
class caller {
public:
  explicit caller(bool has_thread) {
    if (has_thread)
      thread_ = std::thread{[this] { serve(); }};
  }
  ~caller() {
    if (thread_.joinable())
      thread_.detach(); // The process ends by a signal.
  }

  void call(std::function<void()> what) {
    if (!thread_.joinable())
      return what();
    {
      const std::lock_guard lock{mutex_};
      calls_.push_back(std::move(what));
    }
    came_.notify_one();
  }

private:
  void serve() {
    std::unique_lock lock{mutex_};
    for (;;) {
      came_.wait(lock, [this] { return !calls_.empty(); });
      const auto next = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> calls_;
  std::thread thread_;
};

class troupe_receiver final : public receiver {
public:
  troupe_receiver(const load& what, const transport_options& how, bool has_thread)
      : read_(what), caller_(has_thread), links_(greeting(role::server), events(), how) {
    const auto listening = links_.listen({"127.0.0.1", 0});
    if (!listening)
      throw std::runtime_error{listening.error().text};
    where_ = *listening;
  }

  std::string address() const override { return to_string(where_); }
  void serve() override {
    for (;;)
      pause();
  }

private:
  link_events events() {
    link_events made;
    made.opened = [](link_id, const hello&, const std::string&) {};
    made.received = [this](link_id from, message what) {
      caller_.call([this, from, what = std::move(what)] { answer(from, what); });
    };
    made.lost = [](link_id, const failure&) {};
    made.rejected = [](const std::string&, const failure&) {};
    return made;
  }

  void answer(link_id from, const message& what) {
    const auto& asked = std::get<request_list>(what).items.at(0);
    const push_reply answer{read_(asked.what.push->pieces.at(0).values.get()), false};
    links_.send(from, reply_message{asked.number, {answer, {}}});
  }

  payload_reader read_;
  caller caller_;
  endpoint where_;
  transport links_;
};

class troupe_sender final : public sender {
public:
  troupe_sender(const load& what, const transport_options& how, const std::string& address,
                bool has_thread)
      : what_(what), from_(what), caller_(has_thread),
        links_(greeting(role::worker), events(), how),
        link_(links_.connect(*parse_endpoint(address))) {
    opened_.get_future().wait();
  }
  ~troupe_sender() override { ending_ = true; }

  void run(round_trips& trips) override {
    std::promise<void> all;
    trips_ = &trips;
    answered_ = 0;
    done_ = &all;
    {
      const std::lock_guard lock{mutex_};
      send_more();
    } // The thread of the links does the rest.
    all.get_future().wait();
  }

private:
  link_events events() {
    link_events made;
    made.opened = [this](link_id, const hello&, const std::string&) { opened_.set_value(); };
    made.received = [this](link_id, const message& what) {
      const auto& answer = std::get<reply_message>(std::get<answer_list>(what).items.at(0));
      caller_.call([this, version = answer.what.pushed->version] { take(version); });
    };
    made.lost = [this](link_id, const failure& why) {
      if (ending_)
        return;
      std::fprintf(stderr, "link lost: %s\n", why.text.c_str());
      _exit(1);
    };
    made.rejected = [](const std::string&, const failure&) {};
    return made;
  }

  void take(std::uint64_t answer) {
    const std::lock_guard lock{mutex_};
    trips_->end(answered_);
    from_.check_answer(answered_++, answer);
    if (trips_->done())
      done_->set_value();
    else
      send_more();
  }

  void send_more() {
    while (trips_->may_send()) {
      const auto number = trips_->begin();
      links_.send(link_, request_of(number, from_.at(number), what_.bytes / sizeof(float)));
    }
  }

  load what_;
  payloads from_;
  caller caller_;
  std::promise<void> opened_;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_; ///< Guards the rest: answers come while the window fills.
  round_trips* trips_ = nullptr;
  std::size_t answered_ = 0;
  std::promise<void>* done_ = nullptr;
  transport links_;
  link_id link_;
};

contestant troupe_contestant(const std::string& name, const std::string& about,
                             const transport_options& how, bool has_thread = false) {
  return {
    name,
    about,
    [=](const load& what) { return std::make_unique<troupe_receiver>(what, how, has_thread); },
    [=](const load& what, const std::string& address) {
      return std::make_unique<troupe_sender>(what, how, address, has_thread);
    },
    {}};
}

} // namespace

std::vector<contestant> troupe_contestants() {
  transport_options tcp;
  tcp.unix_sockets = false;
  return {troupe_contestant("troupe", "Troupe's links as they are by default", {}),
          troupe_contestant("troupe-tcp", "the same over TCP", tcp),
          troupe_contestant("troupe-threads", "by default, used on another thread", {}, true)};
}

} // namespace troupe::bench
