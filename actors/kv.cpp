#include "actors/kv.hpp"

#include "caf/message.hpp"
#include "caf/sec.hpp"

namespace troupe {

namespace {

constexpr auto category = caf::atom("troupe");

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

std::uint64_t payload_bytes(const update& what) {
  return payload_bytes(what.pieces) + payload_bytes(what.rows) + payload_bytes(what.packed);
}

std::uint64_t payload_bytes(const values& what) {
  return payload_bytes(what.pieces) + payload_bytes(what.rows) + payload_bytes(what.packed);
}

std::uint64_t payload_bytes(const query& what) {
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

caf::error to_caf(const failure& why) {
  return {static_cast<std::uint8_t>(why.code), category, caf::make_message(why.text)};
}

failure from_caf(const caf::error& why) {
  if (why.category() == category) {
    const auto& context = why.context();
    return {static_cast<errc>(why.code()),
            context.match_elements<std::string>() ? context.get_as<std::string>(0) : std::string{}};
  }
  if (why == caf::sec::request_timeout)
    return {errc::timed_out, "no answer in time"};
  return {errc::peer_lost, "the receiver is gone"};
}

caf::error reason_to_end(const orders& what) {
  return what.failed.empty() ? caf::error{} : to_caf({errc::fenced, what.failed});
}

} // namespace troupe
