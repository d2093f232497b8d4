// Pushes, pulls and their answers as Cap'n Proto structs, and the values that go with them.
#include "serialization/detail/parts.hpp"

#include <array>
#include <cassert>

namespace troupe::wire::detail {

namespace {

constexpr std::array<std::byte, 8> padding{};

void write_pieces(const std::vector<piece>& from, capnp::List<schema::Range>::Builder to,
                  body_parts& body) {
  body.reserve(from.size() + 1);
  std::size_t size_bytes = 0;
  for (unsigned i = 0; i < to.size(); ++i) {
    const auto& [where, values] = from[i];
    assert(values || where.count == 0);
    write(where, to[i]);
    if (where.count == 0)
      continue;
    body.push_back({values, std::as_bytes(std::span{values.get(), where.count})});
    size_bytes += body.back().bytes.size();
  }
  if (const auto odd = size_bytes % padding.size(); odd != 0)
    body.push_back({nullptr, std::span{padding}.first(padding.size() - odd)});
}

std::vector<piece> read_pieces(capnp::List<schema::Range>::Reader from, body_reader& body) {
  check_count(from.size(), pieces_max, "pieces");
  std::vector<piece> pieces;
  pieces.reserve(from.size());
  for (const auto element : from) {
    const auto where = read(element);
    pieces.push_back({where, body.take(where.count)});
  }
  return pieces;
}

} // namespace

float_ptr body_reader::take(std::uint64_t count) {
  if (count > (size_bytes_ - taken_bytes_) / sizeof(float))
    throw rejected{"the pieces have more values than the message brings"};
  if (count == 0)
    return {};
  const auto* values = reinterpret_cast<const float*>(body_.get() + taken_bytes_);
  taken_bytes_ += static_cast<std::size_t>(count) * sizeof(float);
  return {body_, values};
}

void body_reader::finish() const {
  if ((taken_bytes_ + 7) / 8 * 8 != size_bytes_)
    throw rejected{"the message brings " + std::to_string(size_bytes_)
                   + " bytes of values, its "
                     "pieces have "
                   + std::to_string(taken_bytes_)};
}

void write(const range& from, schema::Range::Builder to) {
  to.setTable(from.table.value);
  to.setFirst(from.first);
  to.setCount(from.count);
}

range read(schema::Range::Reader from) {
  const range where{{from.getTable()}, from.getFirst(), from.getCount()};
  if (where.table.value >= tables_max || where.first > elements_max
      || where.count > elements_max - where.first)
    throw rejected{"a range that no table has: table " + std::to_string(where.table.value)
                   + ", first " + std::to_string(where.first) + ", count "
                   + std::to_string(where.count)};
  return where;
}

void write(const step_header& from, schema::Step::Builder to) {
  to.setWorker(from.worker.value);
  to.setIncarnation(from.incarnation.value);
  to.setGeneration(from.generation.value);
  to.setBatch(from.batch.value);
  to.setClock(from.clock);
}

step_header read(schema::Step::Reader from) {
  return {.worker = {from.getWorker()},
          .incarnation = {from.getIncarnation()},
          .generation = {from.getGeneration()},
          .batch = {from.getBatch()},
          .clock = from.getClock()};
}

void write(const push_request& from, schema::PushRequest::Builder to, body_parts& body) {
  const auto& push = from.update;
  to.setRequest(from.request);
  write(push.step, to.initStep());
  write_numbers(push.tables, to.initTables(static_cast<unsigned>(push.tables.size())));
  to.setBaseVersion(push.base_version);
  to.setGradientNorm(push.gradient_norm);
  write_pieces(push.pieces, to.initPieces(static_cast<unsigned>(push.pieces.size())), body);
}

push_request read(schema::PushRequest::Reader from, body_reader& body) {
  const auto tables = from.getTables();
  check_count(tables.size(), tables_max, "tables");
  return {.request = from.getRequest(),
          .update = {.step = read(from.getStep()),
                     .tables = read_numbers<table_id>(tables),
                     .base_version = from.getBaseVersion(),
                     .gradient_norm = from.getGradientNorm(),
                     .pieces = read_pieces(from.getPieces(), body)}};
}

void write(const push_reply& from, schema::PushReply::Builder to) {
  to.setRequest(from.request);
  to.setVersion(from.receipt.version);
  to.setDuplicate(from.receipt.duplicate);
}

push_reply read(schema::PushReply::Reader from) {
  return {from.getRequest(), {from.getVersion(), from.getDuplicate()}};
}

void write(const pull_request& from, schema::PullRequest::Builder to) {
  to.setRequest(from.request);
  write(from.query.step, to.initStep());
  to.setLatest(from.query.latest);
  write_list(from.query.ranges, to.initRanges(static_cast<unsigned>(from.query.ranges.size())));
}

pull_request read(schema::PullRequest::Reader from) {
  return {.request = from.getRequest(),
          .query = {.step = read(from.getStep()),
                    .latest = from.getLatest(),
                    .ranges = read_list<range>(from.getRanges(), pieces_max, "ranges")}};
}

void write(const pull_reply& from, schema::PullReply::Builder to, body_parts& body) {
  const auto& pieces = from.values.pieces;
  to.setRequest(from.request);
  to.setVersion(from.values.version);
  write_pieces(pieces, to.initPieces(static_cast<unsigned>(pieces.size())), body);
}

pull_reply read(schema::PullReply::Reader from, body_reader& body) {
  return {.request = from.getRequest(),
          .values = {.version = from.getVersion(), .pieces = read_pieces(from.getPieces(), body)}};
}

void write(const failure_reply& from, schema::FailureReply::Builder to) {
  to.setRequest(from.request);
  write(from.why, to.initWhy(), text_bytes_max);
}

failure_reply read(schema::FailureReply::Reader from) {
  return {from.getRequest(), read(from.getWhy())};
}

} // namespace troupe::wire::detail
