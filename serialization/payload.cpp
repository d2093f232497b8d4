#include "serialization/payload.hpp"

namespace troupe {

namespace {

std::uint64_t payload_bytes(const std::vector<piece>& pieces) {
  std::uint64_t count = 0;
  for (const auto& x : pieces)
    count += x.where.count;
  return count * sizeof(float);
}

std::uint64_t payload_bytes(const std::vector<row_piece>& rows) {
  std::uint64_t bytes = 0;
  for (const auto& x : rows)
    bytes +=
      x.where.floats() * sizeof(float) + (x.where.keys ? x.where.count * sizeof(std::uint64_t) : 0);
  return bytes;
}

std::uint64_t payload_bytes(const std::vector<packed_piece>& packed) {
  std::uint64_t bytes = 0;
  for (const auto& x : packed)
    bytes += x.size_bytes;
  return bytes;
}

} // namespace

std::uint64_t payload_bytes(const push_request& what) {
  return payload_bytes(what.pieces) + payload_bytes(what.rows) + payload_bytes(what.packed);
}

std::uint64_t payload_bytes(const pull_reply& what) {
  return payload_bytes(what.pieces) + payload_bytes(what.rows) + payload_bytes(what.packed);
}

std::uint64_t payload_bytes(const pull_request& what) {
  std::uint64_t count = 0;
  for (const auto& x : what.ranges)
    count += x.count;
  for (const auto& x : what.rows)
    count += x.floats() + x.count * (sizeof(std::uint64_t) / sizeof(float));
  return count * sizeof(float);
}

std::uint64_t payload_bytes(const log_entry& what) {
  std::uint64_t total = 0;
  for (const auto& push : what.pushes)
    total += payload_bytes(*push);
  return total;
}

std::uint64_t payload_bytes(const copy_part& what) {
  std::uint64_t total = 0;
  for (const auto& x : what.image.blocks)
    total += (x.count + x.state_count) * sizeof(float);
  for (const auto& x : what.image.slabs)
    total += x.count * (x.row_floats * sizeof(float) + 2 * sizeof(std::uint64_t));
  return total;
}

std::uint64_t payload_bytes(const request& what) {
  return (what.push ? payload_bytes(*what.push) : 0) + (what.pull ? payload_bytes(*what.pull) : 0);
}

} // namespace troupe
