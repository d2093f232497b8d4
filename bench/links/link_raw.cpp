// Moves payloads with a plain loop of sendmsg and recvmsg on one socket, in blocking threads.
#include "bench/links/link_contest.hpp"
#include "bench/links/raw_socket.hpp"

#include <array>

namespace troupe::bench {

namespace {

/// Precedes a payload.
struct raw_header {
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
};

struct raw_way {
  socket_kind kind;
  std::string congestion_control; ///< Empty: the system's.

  void apply_to(const raw_socket& socket) const {
    if (!congestion_control.empty())
      socket.use_congestion_control(congestion_control);
  }
};

class raw_receiver final : public receiver {
public:
  raw_receiver(const load& what, const raw_way& how)
      : what_(what), how_(how), listener_(raw_socket::listen(how.kind)), into_({what.bytes}),
        read_(what) {
    how.apply_to(listener_);
  }

  std::string address() const override { return listener_.address(); }

  void serve() override {
    const auto socket = listener_.accept();
    how_.apply_to(socket);
    for (;;) {
      raw_header header;
      // All payloads are of one length, so one call can bring a small one with its header.
      std::array<iovec, 2> parts{{{&header, sizeof header}, {into_.at(0).get(), what_.bytes}}};
      socket.receive(parts);
      const std::uint64_t answer = read_(into_.at(0).get());
      socket.send(&answer, sizeof answer);
    }
  }

private:
  load what_;
  raw_way how_;
  raw_socket listener_;
  payloads into_;
  payload_reader read_;
};

class raw_sender final : public sender {
public:
  raw_sender(const load& what, const raw_way& how, const std::string& address)
      : what_(what), socket_(raw_socket::connect(how.kind, address)), from_(what) {
    how.apply_to(socket_);
  }

  void run(round_trips& trips) override {
    for (std::size_t answered = 0; !trips.done(); ++answered) {
      while (trips.may_send()) {
        raw_header header{what_.bytes, trips.begin()};
        std::array<iovec, 2> parts{
          {{&header, sizeof header}, {from_.at(header.number).get(), what_.bytes}}};
        socket_.send(parts);
      }
      std::uint64_t answer = 0;
      socket_.receive(&answer, sizeof answer);
      trips.end(answered);
      from_.check_answer(answered, answer);
    }
  }

private:
  load what_;
  raw_socket socket_;
  payloads from_;
};

contestant raw_contestant(const std::string& name, const std::string& about, const raw_way& how) {
  return {name,
          about,
          [how](const load& what) { return std::make_unique<raw_receiver>(what, how); },
          [how](const load& what, const std::string& address) {
            return std::make_unique<raw_sender>(what, how, address);
          },
          {}};
}

} // namespace

std::vector<contestant> raw_contestants() {
  return {raw_contestant("tcp-bbr", "sendmsg and recvmsg over TCP, congestion control bbr",
                         {socket_kind::tcp, "bbr"}),
          raw_contestant("tcp-reno", "the same with reno", {socket_kind::tcp, "reno"}),
          raw_contestant("unix", "sendmsg and recvmsg over a Unix socket",
                         {socket_kind::unix_stream, {}})};
}

} // namespace troupe::bench
