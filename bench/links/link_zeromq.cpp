// ZeroMQ as ps-lite uses it: DEALER to ROUTER over TCP, a header and a payload that is sent from
// where it is. Unlike in ps-lite the answer comes back on the same connection, and the thread of
// the socket reads the payload itself: both make it faster.
#include "bench/links/link_contest.hpp"
#include "bench/zeromq.hpp"

#include <cstring>

namespace troupe::bench {

namespace {

class zeromq_receiver final : public receiver {
public:
  explicit zeromq_receiver(const load& what) : read_(what), where_(socket_.listen()) {}

  std::string address() const override { return where_; }

  void serve() override {
    for (;;) {
      zeromq_message peer, header, payload;
      socket_.receive(peer);
      socket_.receive(header);
      socket_.receive(payload);
      const std::uint64_t answer = read_(payload.data());
      socket_.send(peer.data(), peer.size(), true);
      socket_.send(&answer, sizeof answer, false);
    }
  }

private:
  payload_reader read_;
  zeromq_socket socket_{ZMQ_ROUTER};
  std::string where_;
};

class zeromq_sender final : public sender {
public:
  zeromq_sender(const load& what, const std::string& address) : what_(what), from_(what) {
    socket_.connect(address);
  }

  void run(round_trips& trips) override {
    for (std::size_t answered = 0; !trips.done(); ++answered) {
      while (trips.may_send()) {
        const std::uint64_t number = trips.begin();
        socket_.send(&number, sizeof number, true);
        socket_.send_shared(from_.at(number), what_.bytes, false);
      }
      zeromq_message message;
      socket_.receive(message);
      trips.end(answered);
      std::uint64_t answer = 0;
      std::memcpy(&answer, message.data(), sizeof answer);
      from_.check_answer(answered, answer);
    }
  }

private:
  load what_;
  payloads from_;
  zeromq_socket socket_{ZMQ_DEALER};
};

contestant zeromq_contestant(const std::string& name, const std::string& about,
                             const std::map<std::string, std::string>& environment) {
  return {name, about, [](const load& what) { return std::make_unique<zeromq_receiver>(what); },
          [](const load& what, const std::string& address) {
            return std::make_unique<zeromq_sender>(what, address);
          },
          environment};
}

} // namespace

std::vector<contestant> zeromq_contestants() {
  return {zeromq_contestant("zeromq", "ZeroMQ as ps-lite uses it, as shipped", {}),
          zeromq_contestant("zeromq-tuned", "the same with a malloc that keeps its memory",
                            malloc_that_keeps)};
}

} // namespace troupe::bench
