#include "actors/training/ports.hpp"

#include "base/crc32c.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <span>
#include <stdexcept>

namespace troupe {

namespace {

thread_local port_collector* innermost_collector = nullptr;

constexpr std::size_t port_name_max = 10; ///< As of nodes: names of both stand in reports.

/// Throws std::invalid_argument for tensors beyond the limits.
std::vector<parcel_tensor> checked(const std::string& port, const std::vector<tensor>& tensors) {
  const auto refuse = [&](const std::string& text) {
    throw std::invalid_argument{"the port " + quote(port) + ": a parcel has " + text};
  };
  if (tensors.size() > parcel_tensors_max)
    refuse(fmt::format("{} tensors, and {} is the most", tensors.size(), parcel_tensors_max));
  std::vector<parcel_tensor> raw;
  raw.reserve(tensors.size());
  std::uint64_t room = parcel_floats_max;
  for (const auto& each : tensors) {
    if (each.raw().count > room)
      refuse("tensors of more than 1 GiB together: send it in parts");
    if (each.raw().count > 0 && !each.raw().values)
      refuse(fmt::format("a tensor of {} floats without values", each.raw().count));
    room -= each.raw().count;
    raw.push_back(each.raw());
  }
  return raw;
}

} // namespace

std::string detail::shortened(std::string text) {
  constexpr std::size_t length_max = 400, kept = 300;
  if (text.size() <= length_max)
    return text;
  const auto checksum = storage::detail::crc32c(std::as_bytes(std::span{text}));
  return fmt::format("{}...{:08x}", text.substr(0, kept), checksum);
}

tensor::tensor(std::vector<float> values) {
  const auto whole = std::make_shared<const std::vector<float>>(std::move(values));
  raw_ = {{whole, whole->data()}, whole->size()};
}

port_base::port_base(kind what, std::string_view name, std::string head)
    : kind_(what), name_(name), head_(std::move(head)) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  if (name_.empty() || name_.size() > port_name_max
      || name_.find_first_not_of(characters) != std::string::npos)
    throw std::invalid_argument{
      fmt::format("{} is no name of a port: use 1 to {} of the characters a-z, 0-9 and _",
                  quote(name_), port_name_max)};
  if (innermost_collector != nullptr)
    innermost_collector->ports_.push_back(this);
}

port_base::~port_base() {
  for (auto* each = innermost_collector; each != nullptr; each = each->around_)
    std::erase(each->ports_, this);
}

port_line& port_base::line() const {
  if (line_ == nullptr)
    throw std::logic_error{fmt::format("the port {} is used before start(), or is not joined: call "
                                       "graph::join()",
                                       quote(name_))};
  return *line_;
}

port_line& port_base::line_to(std::uint32_t to) const {
  auto& found = line();
  if (const auto peers = found.peers(); to >= peers)
    throw std::out_of_range{
      fmt::format("the port {} has no peer {}: it has {}", quote(name_), to, peers)};
  return found;
}

bool port_base::send_bytes(const void* head, std::size_t size, const std::vector<tensor>& tensors,
                           std::uint32_t to) {
  auto raw = checked(name_, tensors);
  const auto* const bytes = static_cast<const std::byte*>(head);
  return line_to(to).send(to, {bytes, bytes + size}, std::move(raw));
}

port_collector::port_collector() : around_(std::exchange(innermost_collector, this)) {}
port_collector::~port_collector() { innermost_collector = around_; }

} // namespace troupe
