#include "examples/03_count_batches/numbered.hpp"

#include "examples/03_count_batches/parcels.hpp"

#include "fmt/core.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <utility>

namespace count_batches {

namespace {

std::uint64_t drawn() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Parcels have up to this many floats, each of which depends on the number.
constexpr std::uint64_t floats_max = 1000;
std::size_t floats_of(std::uint64_t number) { return number * 37 % floats_max; }
float value_of(std::uint64_t number) { return static_cast<float>(number % 4096); }

} // namespace

parcel_log::parcel_log(const std::string& folder, const std::string& port) {
  if (folder.empty())
    return;
  const auto name = fmt::format("{}/{}-{}-{:x}", folder, port, getpid(), drawn());
  file_.reset(std::fopen(name.c_str(), "a"), [](std::FILE* file) {
    if (file != nullptr)
      std::fclose(file);
  });
  if (!file_)
    throw std::runtime_error{"cannot create " + name};
  std::setvbuf(file_.get(), nullptr, _IOLBF, 0); // Each line outlives a SIGKILL.
}

void parcel_log::note(std::string_view what, const parcel_number& which) const {
  if (file_)
    fmt::print(file_.get(), "{} {:x} {} {} {}\n", what, which.sender, which.lane, which.session,
               which.number);
}

void parcel_log::note(std::string_view what, std::uint32_t peer) const {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  if (file_)
    fmt::print(file_.get(), "{} {} {:.6f}\n", what, peer, now.count());
}

// -- the sender -----------------------------------------------------------------------------------

number_sender::number_sender(number_port& port, const std::string& folder)
    : port_(&port), log_(folder, port.name()), self_(drawn()), lanes_(port.peers()) {
  port.joined = [this](std::uint32_t to) {
    auto& lane = lanes_.at(to);
    if (std::exchange(lane.has_session, true))
      throw std::runtime_error{fmt::format("{}: receiver {} joined twice", port_->name(), to)};
    ++lane.session;
    lane.first = lane.sent + 1;
    log_.note("joined", to);
  };
  port.lost = [this](std::uint32_t to) {
    if (!std::exchange(lanes_.at(to).has_session, false))
      throw std::runtime_error{fmt::format("{}: receiver {} was lost twice", port_->name(), to)};
    log_.note("lost", to);
  };
  port.writable = [this](std::uint32_t to) { send_owed(to); };
}

void number_sender::burst(const troupe::node_notes& notes) {
  for (std::uint32_t to = 0; to < lanes_.size(); ++to) {
    lanes_[to].owed = parcel_window + parcel_window / 2;
    send_owed(to);
  }
  notes.count("sent", std::exchange(fresh_, 0));
}

void number_sender::send_owed(std::uint32_t to) {
  auto& lane = lanes_[to];
  for (; lane.owed > 0; --lane.owed) {
    const auto number = lane.sent + 1;
    const numbered_parcel next{
      .head = {self_, lane.session, lane.first, number, to},
      .tensors = {std::vector<float>(floats_of(number), value_of(number))}};
    if (!port_->send(next, to))
      return;
    log_.note("sent", next.head);
    lane.sent = number;
    ++fresh_;
  }
}

// -- the receiver ---------------------------------------------------------------------------------

number_checker::number_checker(numbered_port& port, const std::string& folder)
    : port_(&port), log_(folder, port.name()) {
  port.joined = [this](std::uint32_t from) {
    auto& lane = lane_of(from);
    require(!std::exchange(lane.has_session, true), from, "it joined twice");
    lane.is_fresh = true;
    log_.note("joined", from);
  };
  port.lost = [this](std::uint32_t from) {
    require(std::exchange(lane_of(from).has_session, false), from, "it was lost twice");
    log_.note("lost", from);
  };
  port.take = [this](numbered_parcel&& what) { take(what); };
}

void number_checker::count(const troupe::node_notes& notes) {
  notes.count("taken", std::exchange(taken_, 0));
  notes.count("missing", std::exchange(missing_, 0));
}

number_checker::taken_lane& number_checker::lane_of(std::uint32_t peer) {
  lanes_.resize(std::max<std::size_t>(lanes_.size(), peer + 1));
  return lanes_[peer];
}

void number_checker::take(const numbered_parcel& what) {
  auto& lane = lane_of(what.from);
  const auto& now = what.head;
  log_.note("taken", now);
  require(lane.has_session, what.from, "a parcel came outside of a session");
  if (std::exchange(lane.is_fresh, false))
    check_session(lane, now, what.from);
  else
    require(
      now.sender == lane.last.sender && now.session == lane.last.session
        && now.number == lane.last.number + 1,
      what.from,
      fmt::format("parcel {} came after parcel {} of a session", now.number, lane.last.number));
  const auto floats = what.tensors.at(0).values();
  require(floats.size() == floats_of(now.number)
            && std::ranges::count(floats, value_of(now.number))
                 == static_cast<std::ptrdiff_t>(floats.size()),
          what.from, fmt::format("parcel {} has values of another one", now.number));
  lane.last = now;
  ++taken_;
}

/// Checks the first parcel of a session. Numbers that an earlier incarnation of this process took
/// are unknown here.
void number_checker::check_session(taken_lane& of, const parcel_number& now, std::uint32_t from) {
  const auto& last = of.last;
  require(now.number == now.first, from,
          fmt::format("a session began with parcel {}, not {}", now.number, now.first));
  require(!of.gone.contains(now.sender), from, "a parcel of an earlier incarnation came");
  if (last.number == 0)
    return;
  const bool is_same = now.sender == last.sender;
  if (!is_same)
    of.gone.insert(last.sender);
  const auto heard = is_same ? last.number : 0, sessions = is_same ? last.session : 1;
  require(now.session >= sessions + (is_same ? 1 : 0) && now.number > heard, from,
          fmt::format("parcel {} of session {} came after parcel {} of session {}", now.number,
                      now.session, heard, sessions));
  const auto missing = now.number - heard - 1;
  require(missing <= parcel_window * (now.session - sessions), from,
          fmt::format("{} parcels are missing, and the window is {}", missing, parcel_window));
  missing_ += missing;
}

void number_checker::require(bool holds, std::uint32_t from, const std::string& broken) const {
  if (!holds)
    throw std::runtime_error{fmt::format("{}, sender {}: {}", port_->name(), from, broken)};
}

} // namespace count_batches
