// Measures channels with several senders, and with a receiver that stands still. links_bench has
// one sender beside other ways.
#include "bench/checksum.hpp"
#include "bench/child.hpp"
#include "bench/links/channel_member.hpp"
#include "bench/machine_load.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr std::uint32_t receiver_index = 1000;
constexpr std::size_t window = 8;

struct options : common_options {
  double still_seconds = 5;
  bool any_load = false;
};

void pass(double seconds) { poll(nullptr, 0, static_cast<int>(1000 * seconds)); }

// -- the children -------------------------------------------------------------------------------

/// Takes parcels, and stands still within one for as long as it is told.
class receiving_part {
public:
  explicit receiving_part(std::uint32_t senders)
      : shares_(senders), member_(
                            receiver_index, {bench_end("data", false, all(senders), window)}, {},
                            [this](port_room& room) { bind(room); }, [] {}) {}

  std::string address() const { return member_.address(); }
  /// Returns the seconds in which so many parcels came, and the least share of a sender.
  json await(std::uint64_t parcels) {
    std::promise<void> done;
    done_ = &done;
    end_ = parcels;
    done.get_future().wait();
    return {{"seconds", seconds_}, {"least_share", least_share_}};
  }
  void stand_still(double seconds) { still_seconds_ = seconds; }

private:
  static std::vector<std::uint32_t> all(std::uint32_t senders) {
    std::vector<std::uint32_t> made(senders);
    std::iota(made.begin(), made.end(), 0u);
    return made;
  }

  void bind(port_room& room) {
    data_.emplace("data");
    data_->take = [this](parcel<bench_head>&& what) { take(what); };
    room.bind(0, *data_);
  }

  void take(const parcel<bench_head>& what) {
    if (const double seconds = still_seconds_.exchange(0); seconds > 0)
      pass(seconds);
    if (what.tensors.empty())
      return;
    const auto values = what.tensors[0].values();
    if (checksum(values.data(), values.size_bytes()) == 0)
      _exit(1); // The values are not zeros.
    if (end_ == 0)
      return;
    if (came_++ == 0) {
      began_ = seconds_now();
      std::ranges::fill(shares_, 0);
    }
    ++shares_[what.from];
    if (came_ <= end_)
      return;
    seconds_ = seconds_now() - began_;
    least_share_ = static_cast<double>(std::ranges::min(shares_)) / static_cast<double>(came_);
    end_ = came_ = 0;
    done_->set_value();
  }

  std::optional<in<bench_head>> data_;
  std::vector<std::uint64_t> shares_;
  std::atomic<std::uint64_t> end_ = 0;
  std::uint64_t came_ = 0;
  double began_ = 0, seconds_ = 0, least_share_ = 0;
  std::atomic<double> still_seconds_ = 0;
  std::promise<void>* done_ = nullptr;
  channel_member member_; ///< Last: its thread uses the rest.
};

/// Sends new parcels for as long as there is credit.
class sending_part {
public:
  sending_part(std::uint32_t index, std::size_t floats)
      : floats_(floats), member_(
                           index, {bench_end("data", true, {receiver_index}, window)}, {},
                           [this](port_room& room) { bind(room); }, [this] { send_all(); }) {}

  void connect(const std::string& address) {
    member_.listed(receiver_index, address);
    joined_.get_future().wait();
  }
  void begin() { member_.step(); }

private:
  void bind(port_room& room) {
    data_.emplace("data");
    data_->joined = [this](std::uint32_t) { joined_.set_value(); };
    data_->writable = [this](std::uint32_t) { send_all(); };
    room.bind(0, *data_);
  }

  /// Makes a parcel only if it can be sent, so that the memory is that of parcels under way.
  void send_all() {
    while (data_->ready(0)) {
      auto values = pool_.floats(floats_);
      std::fill_n(values.get(), floats_, 1.0f);
      parcel<bench_head> next;
      next.tensors.emplace_back(std::move(values), floats_);
      if (!data_->send(next, 0))
        return;
    }
    if (data_->send({}, 0)) // `writable` follows a send() that was refused.
      member_.step();       // Credit came meanwhile.
  }

  std::size_t floats_;
  buffer_pool pool_;
  std::optional<out<bench_head>> data_;
  std::promise<void> joined_;
  channel_member member_;
};

int play(const json& part) {
  auto& parent = parent_line();
  if (part.at("receives")) {
    receiving_part self{part.at("senders")};
    parent.send({{"address", self.address()}});
    for (;;) {
      const auto asked = parent.receive();
      if (const auto still = asked.find("still"); still != asked.end()) {
        self.stand_still(*still);
        parent.send({{"ready", true}});
      } else {
        parent.send(self.await(asked.at("parcels")));
      }
    }
  }
  sending_part self{part.at("index"), part.at("floats")};
  self.connect(part.at("address"));
  parent.send({{"ready", true}});
  parent.receive();
  self.begin();
  parent.receive(); // Until the parent ends this process.
  return 0;
}

// -- the parent ---------------------------------------------------------------------------------

/// A receiver and its senders, each a process.
struct team {
  team(std::uint32_t count, std::size_t bytes)
      : receiver(json{{"receives", true}, {"senders", count}}, {}) {
    const auto address = receiver.line().receive().at("address");
    for (std::uint32_t i = 0; i < count; ++i) {
      senders.push_back(std::make_unique<child>(json{{"receives", false},
                                                     {"index", i},
                                                     {"floats", bytes / sizeof(float)},
                                                     {"address", address}},
                                                std::map<std::string, std::string>{}));
      senders.back()->line().receive();
    }
  }

  void begin() {
    for (const auto& each : senders)
      each->line().send({{"go", true}});
  }
  json await(std::size_t parcels) {
    receiver.line().send({{"parcels", parcels}});
    return receiver.line().receive();
  }

  child receiver;
  std::vector<std::unique_ptr<child>> senders;
};

void measure_senders(const options& chosen, std::size_t bytes) {
  const double load = busy_processors();
  const std::size_t count = std::max<std::size_t>((256u << 20) / bytes, 50);
  std::vector<row> rows;
  for (const std::uint32_t senders : {1u, 4u}) {
    team all{senders, bytes};
    all.begin();
    all.await(count / 8); // Warm-up.
    std::vector<double> rates;
    double least_share = 1;
    for (std::size_t round = 0; round < chosen.rounds; ++round) {
      const auto found = all.await(count);
      rates.push_back(1e-9 * static_cast<double>(count * bytes)
                      / found.at("seconds").get<double>());
      least_share = std::min(least_share, found.at("least_share").get<double>());
    }
    row made;
    made.text("contestant", "contestant", fmt::format("{}-to-1", senders))
      .range("gb_s", "GB/s", spread_of(rates), 3)
      .number("least_share", "least share", least_share, 3);
    rows.push_back(std::move(made));
  }
  print_case(
    fmt::format("senders to one receiver, parcels of {}, window {}", size_text(bytes), window),
    std::move(rows), chosen.json, load);
}

void measure_still(const options& chosen, std::size_t bytes) {
  const double load = busy_processors();
  team all{1, bytes};
  all.receiver.line().send({{"still", chosen.still_seconds}});
  all.receiver.line().receive();
  const auto sender = all.senders.front()->pid();
  const double before = resident_megabytes(sender);
  all.begin();
  pass(0.9 * chosen.still_seconds);
  const double growth = resident_megabytes(sender) - before;
  row made;
  made.text("contestant", "contestant", "standing-still")
    .number("growth_mb", "growth MB", growth, 2)
    .number("window_mb", "window MB", 1e-6 * static_cast<double>(window * bytes), 2);
  print_case(fmt::format("growth of a sender whose receiver stands still for {} s, parcels of {}",
                         chosen.still_seconds, size_text(bytes)),
             {std::move(made)}, chosen.json, load);
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (const auto part = part_of(argc, argv); !part.is_null())
      return play(part);
    options chosen;
    CLI::App app{"How fast several senders of a channel are, and what a full one keeps.",
                 "channels_bench"};
    declare(app, chosen, {"1-to-1", "4-to-1", "standing-still"});
    declare_any_load(app, chosen.any_load);
    app.add_option("--still", chosen.still_seconds, "Seconds for which a receiver stands still")
      ->capture_default_str();
    if (const auto done = parse(app, argc, argv))
      return *done;
    require_quiet_machine(chosen.any_load);
    if (chosen.sizes.empty())
      chosen.sizes = {1 << 20};
    for (const std::size_t bytes : chosen.sizes) {
      measure_senders(chosen, bytes / sizeof(float) * sizeof(float));
      measure_still(chosen, bytes / sizeof(float) * sizeof(float));
    }
    return 0;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "channels_bench: {}\n", problem.what());
    return 1;
  }
}
