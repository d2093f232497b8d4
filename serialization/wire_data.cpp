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

void write(const update& from, schema::Update::Builder to, body_parts& body) {
  write(from.step, to.initStep());
  write_numbers(from.tables, to.initTables(static_cast<unsigned>(from.tables.size())));
  to.setBaseVersion(from.base_version);
  to.setGradientNorm(from.gradient_norm);
  write_pieces(from.pieces, to.initPieces(static_cast<unsigned>(from.pieces.size())), body);
}

update read(schema::Update::Reader from, body_reader& body) {
  const auto tables = from.getTables();
  check_count(tables.size(), tables_max, "tables");
  return {.step = read(from.getStep()),
          .tables = read_numbers<table_id>(tables),
          .base_version = from.getBaseVersion(),
          .gradient_norm = from.getGradientNorm(),
          .pieces = read_pieces(from.getPieces(), body)};
}

void write(const query& from, schema::Query::Builder to) {
  write(from.step, to.initStep());
  to.setLatest(from.latest);
  write_list(from.ranges, to.initRanges(static_cast<unsigned>(from.ranges.size())));
}

query read(schema::Query::Reader from) {
  return {.step = read(from.getStep()),
          .latest = from.getLatest(),
          .ranges = read_list<range>(from.getRanges(), pieces_max, "ranges")};
}

void write(const receipt& from, schema::Receipt::Builder to) {
  to.setVersion(from.version);
  to.setDuplicate(from.duplicate);
}

receipt read(schema::Receipt::Reader from) { return {from.getVersion(), from.getDuplicate()}; }

void write(const values& from, schema::Values::Builder to, body_parts& body) {
  to.setVersion(from.version);
  write_pieces(from.pieces, to.initPieces(static_cast<unsigned>(from.pieces.size())), body);
}

values read(schema::Values::Reader from, body_reader& body) {
  return {.version = from.getVersion(), .pieces = read_pieces(from.getPieces(), body)};
}

void write(const request_message& from, schema::Request::Builder to, body_parts& body) {
  assert(from.what.push || from.what.pull);
  to.setNumber(from.number);
  if (from.what.push)
    write(*from.what.push, to.initPush(), body);
  if (from.what.pull)
    write(*from.what.pull, to.initPull());
}

request_message read(schema::Request::Reader from, body_reader& body) {
  request_message made{from.getNumber(), {}};
  if (from.hasPush())
    made.what.push = read(from.getPush(), body);
  if (from.hasPull())
    made.what.pull = read(from.getPull());
  if (!made.what.push && !made.what.pull)
    throw rejected{"a request that asks for nothing"};
  return made;
}

void write(const reply_message& from, schema::Reply::Builder to, body_parts& body) {
  to.setNumber(from.number);
  if (from.what.pushed)
    write(*from.what.pushed, to.initPushed());
  if (from.what.pulled)
    write(*from.what.pulled, to.initPulled(), body);
}

reply_message read(schema::Reply::Reader from, body_reader& body) {
  reply_message made{from.getNumber(), {}};
  if (from.hasPushed())
    made.what.pushed = read(from.getPushed());
  if (from.hasPulled())
    made.what.pulled = read(from.getPulled(), body);
  return made;
}

void write(const failure_message& from, schema::FailureReply::Builder to) {
  to.setNumber(from.number);
  write(from.why, to.initWhy(), text_bytes_max);
}

failure_message read(schema::FailureReply::Reader from) {
  return {from.getNumber(), read(from.getWhy())};
}

} // namespace troupe::wire::detail
