// Does the same job over ZeroMQ, as ps-lite uses it: DEALER to ROUTER over TCP, payloads sent from
// where they are. A server is one thread that takes its step in place and answers. It sends the
// very array that later pushes change, where ps-lite copies: faster, and a pull may be torn.
#include "bench/aligned_floats.hpp"
#include "bench/checksum.hpp"
#include "bench/store/random_keys.hpp"
#include "bench/store/store_contest.hpp"
#include "bench/zeromq.hpp"
#include "kernels/optimizer.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <unordered_map>

namespace troupe::bench {

namespace {

struct request_header {
  operation what = operation::push;
  std::uint32_t floats = 0; ///< Floats to be pulled.
  std::uint32_t keys = 0;   ///< Keys of a sparse table; they precede the gradient.
};

/// Returns the floats of the array that server `index` has.
std::size_t share_of(const store_load& what, std::size_t index) {
  const std::size_t floats = what.bytes / sizeof(float);
  return floats / what.servers + (index < floats % what.servers ? 1 : 0);
}

class zeromq_server final : public store_server {
public:
  zeromq_server(const store_load& what, std::uint32_t index)
      : floats_(share_of(what, index)), array_(pool_.floats(floats_)), where_(socket_.listen()) {
    std::fill_n(array_.get(), floats_, 1.0f);
  }

  std::string address() const override { return where_; }

  void serve() override {
    for (;;) {
      zeromq_message peer, head, keys, gradient;
      socket_.receive(peer);
      socket_.receive(head);
      request_header header;
      std::memcpy(&header, head.data(), sizeof header);
      if (header.keys > 0)
        socket_.receive(keys);
      if (header.what != operation::pull) {
        socket_.receive(gradient);
        if (header.keys > 0)
          step_rows(keys, gradient);
        else
          step({aligned_floats(gradient.data(), floats_, scratch_), floats_});
      }
      socket_.send(peer.data(), peer.size(), true);
      socket_.send(&header, sizeof header, header.what != operation::push);
      if (header.what != operation::push)
        socket_.send_shared(header.keys > 0 ? rows_of(keys) : array_, header.floats * sizeof(float),
                            false);
    }
  }

private:
  void step(std::span<const float> gradient) {
    const std::span<float> values{array_.get(), floats_};
    all_finite_ &= kernels::optimizer_step(values, {}, values, {}, gradient, {.rate = 1e-6f});
  }

  // A hash map of vectors, like ps-lite's default handle for wide values.

  static std::span<const std::uint64_t> span_of(const zeromq_message& keys) {
    return {static_cast<const std::uint64_t*>(keys.data()), keys.size() / sizeof(std::uint64_t)};
  }

  std::vector<float>& row_of(std::uint64_t key) {
    auto& row = rows_[key];
    if (row.empty())
      row.resize(sparse_width);
    return row;
  }

  void step_rows(const zeromq_message& keys, const zeromq_message& gradient) {
    const auto* next = static_cast<const float*>(gradient.data());
    for (const auto key : span_of(keys))
      for (float& value : row_of(key))
        value -= 1e-6f * *next++;
  }

  std::shared_ptr<float> rows_of(const zeromq_message& keys) {
    auto values = pool_.floats(span_of(keys).size() * sparse_width);
    float* next = values.get();
    for (const auto key : span_of(keys))
      next = std::ranges::copy(row_of(key), next).out;
    return values;
  }

  std::size_t floats_;
  std::unordered_map<std::uint64_t, std::vector<float>> rows_;
  buffer_pool pool_;
  std::shared_ptr<float> array_;
  zeromq_socket socket_{ZMQ_ROUTER};
  std::string where_;
  bool all_finite_ = true;
  std::vector<float> scratch_;
};

class zeromq_client final : public store_client {
public:
  zeromq_client(const store_load& what, std::uint32_t index,
                const std::vector<std::string>& servers)
      : what_(what), from_(what) {
    if (what.sparse_rows > 0 && what.servers > 1)
      throw std::runtime_error{"sparse tables have one server here"};
    for (std::size_t i = 0; what.sparse_rows > 0 && i < sparse_key_lists; ++i)
      lists_.push_back(random_keys(sparse_width, what.sparse_rows,
                                   what.bytes / sizeof(float) / sparse_width,
                                   index * sparse_key_lists + i));
    // A server without a share of the array is not asked.
    for (std::size_t i = 0; i < servers.size() && share_of(what, i) > 0; ++i) {
      sockets_.push_back(std::make_unique<zeromq_socket>(ZMQ_DEALER));
      sockets_.back()->connect(servers[i]);
    }
  }

  void run(operation what, round_trips& trips) override {
    for (std::size_t answered = 0; !trips.done(); ++answered) {
      while (trips.may_send())
        send(what, from_.at(trips.begin()));
      receive();
      trips.end(answered);
    }
  }

  std::vector<double> probe(std::size_t pushes, std::size_t count) override {
    for (std::size_t i = 0; i < pushes; ++i)
      send(operation::push, from_.at(i));
    std::vector<double> seconds;
    std::size_t open = pushes;
    while (seconds.size() < count && (pushes == 0 || open > 0)) {
      const double begin = seconds_now();
      const request_header header{operation::pull, 1};
      sockets_[0]->send(&header, sizeof header, false);
      for (; open > 0; --open) // Replies come in order.
        receive();
      receive_from(*sockets_[0]);
      seconds.push_back(seconds_now() - begin);
    }
    return seconds;
  }

  void flood(std::chrono::milliseconds interval, std::chrono::seconds duration,
             std::function<void(const flood_counters&)> report) override {
    flood_counters counters;
    const double begin = seconds_now();
    double reported = 0;
    for (double next = 0; next < static_cast<double>(duration.count());) {
      const double passed = seconds_now() - begin;
      if (passed >= reported + 1) {
        reported = static_cast<double>(static_cast<int>(passed));
        report(counters);
      }
      if (passed >= next) {
        send(operation::push, from_.fresh());
        ++counters.made;
        next += 1e-3 * static_cast<double>(interval.count());
      } else if (sockets_[0]->readable_within(std::chrono::milliseconds{1})) {
        receive();
        ++counters.acknowledged;
      }
    }
  }

private:
  void send(operation what, const std::shared_ptr<const float>& gradient) {
    if (!lists_.empty())
      return send_rows(what, gradient);
    std::size_t first = 0;
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      const std::size_t floats = share_of(what_, i);
      const request_header header{what, static_cast<std::uint32_t>(floats)};
      sockets_[i]->send(&header, sizeof header, what != operation::pull);
      if (what != operation::pull)
        sockets_[i]->send_shared({gradient, gradient.get() + first}, floats * sizeof(float), false);
      first += floats;
    }
  }

  void send_rows(operation what, const std::shared_ptr<const float>& gradient) {
    const auto& list = lists_[sent_++ % lists_.size()];
    const request_header header{what, static_cast<std::uint32_t>(list.floats()),
                                static_cast<std::uint32_t>(list.count)};
    sockets_[0]->send(&header, sizeof header, true);
    sockets_[0]->send_shared(list.keys, list.span().size_bytes(), what != operation::pull);
    if (what != operation::pull)
      sockets_[0]->send_shared(gradient, list.floats() * sizeof(float), false);
  }

  /// Receives the replies of all servers to one operation.
  void receive() {
    for (const auto& socket : sockets_)
      receive_from(*socket);
  }

  void receive_from(zeromq_socket& socket) {
    zeromq_message head, pulled;
    socket.receive(head);
    request_header header;
    std::memcpy(&header, head.data(), sizeof header);
    if (header.what == operation::push)
      return;
    socket.receive(pulled);
    sum_ += checksum(pulled.data(), pulled.size());
  }

  store_load what_;
  gradients from_;
  std::vector<std::unique_ptr<zeromq_socket>> sockets_;
  std::vector<row_keys> lists_;
  std::size_t sent_ = 0;
  std::uint64_t sum_ = 0; ///< Sum of the pulled floats: adding up reads them.
};

store_contestant zeromq_contestant(const std::string& name, const std::string& about,
                                   const std::map<std::string, std::string>& environment) {
  return {name,
          about,
          256,
          [](const store_load& what, std::uint32_t index) {
            return std::make_unique<zeromq_server>(what, index);
          },
          [](const store_load& what, std::uint32_t index, const std::vector<std::string>& servers) {
            return std::make_unique<zeromq_client>(what, index, servers);
          },
          environment};
}

} // namespace

std::vector<store_contestant> zeromq_stores() {
  return {zeromq_contestant("zeromq", "ZeroMQ as ps-lite uses it, as shipped", {}),
          zeromq_contestant("zeromq-tuned", "the same with a malloc that keeps its memory",
                            malloc_that_keeps)};
}

} // namespace troupe::bench
