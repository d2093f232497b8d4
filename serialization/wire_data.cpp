// Pushes, pulls and their answers as Cap'n Proto structs, and the values that go with them.
#include "serialization/detail/parts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace troupe::wire::detail {

namespace {

constexpr std::array<std::byte, 8> padding{};

template <class T>
void add_to(body_parts& body, const std::shared_ptr<const T>& numbers, std::uint64_t count) {
  assert(numbers || count == 0);
  if (count > 0)
    body.push_back({numbers, std::as_bytes(std::span{numbers.get(), count})});
}

void pad(body_parts& body) {
  if (const auto odd = body.size_bytes() % padding.size(); odd != 0)
    body.push_back({nullptr, std::span{padding}.first(padding.size() - odd)});
}

void write_pieces(const std::vector<piece>& from, capnp::List<schema::Range>::Builder to,
                  body_parts& body) {
  for (unsigned i = 0; i < to.size(); ++i) {
    write(from[i].where, to[i]);
    add_to(body, from[i].values, from[i].where.count);
  }
}

std::vector<row_piece> read_rows(capnp::List<schema::Rows>::Reader from) {
  check_count(from.size(), tables_max, "lists of rows");
  std::vector<row_piece> rows;
  rows.reserve(from.size());
  for (const auto element : from)
    rows.push_back({read(element), nullptr});
  return rows;
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

key_ptr body_reader::take_keys(std::uint64_t count) {
  const auto first = (taken_bytes_ + 7) / 8 * 8;
  if (first > size_bytes_ || count > (size_bytes_ - first) / sizeof(std::uint64_t))
    throw rejected{"the rows have more keys than the message brings"};
  if (count == 0)
    return {};
  // Copied: who checks a key uses it afterwards, and a slot's writer may still change it.
  const auto size = static_cast<std::size_t>(count) * sizeof(std::uint64_t);
  const std::shared_ptr<std::uint64_t[]> keys{new std::uint64_t[count]};
  std::memcpy(keys.get(), body_.get() + first, size);
  taken_bytes_ = first + size;
  return {keys, keys.get()};
}

void body_reader::skip_padding() {
  taken_bytes_ = std::min((taken_bytes_ + 7) / 8 * 8, size_bytes_);
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

void write(const row_keys& from, schema::Rows::Builder to) {
  to.setTable(from.table.value);
  to.setWidth(from.width);
  to.setCount(from.count);
}

row_keys read(schema::Rows::Reader from) {
  const row_keys rows{{from.getTable()}, from.getWidth(), from.getCount(), nullptr};
  if (rows.table.value >= tables_max || rows.width == 0 || rows.width > row_width_max
      || rows.count > elements_max)
    throw rejected{"rows that no table has: table " + std::to_string(rows.table.value) + ", width "
                   + std::to_string(rows.width) + ", count " + std::to_string(rows.count)};
  return rows;
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
  auto rows = to.initRows(static_cast<unsigned>(from.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) {
    write(from.rows[i].where, rows[i]);
    add_to(body, from.rows[i].where.keys, from.rows[i].where.count);
  }
  write_pieces(from.pieces, to.initPieces(static_cast<unsigned>(from.pieces.size())), body);
  for (const auto& x : from.rows)
    add_to(body, x.values, x.where.floats());
  pad(body);
}

update read(schema::Update::Reader from, body_reader& body) {
  const auto tables = from.getTables();
  check_count(tables.size(), tables_max, "tables");
  update made{.step = read(from.getStep()),
              .tables = read_numbers<table_id>(tables),
              .base_version = from.getBaseVersion(),
              .gradient_norm = from.getGradientNorm(),
              .pieces = {},
              .rows = read_rows(from.getRows())};
  for (auto& x : made.rows)
    x.where.keys = body.take_keys(x.where.count);
  made.pieces = read_pieces(from.getPieces(), body);
  for (auto& x : made.rows)
    x.values = body.take(x.where.floats());
  return made;
}

void write(const query& from, schema::Query::Builder to, body_parts& body) {
  write(from.step, to.initStep());
  to.setLatest(from.latest);
  write_list(from.ranges, to.initRanges(static_cast<unsigned>(from.ranges.size())));
  auto rows = to.initRows(static_cast<unsigned>(from.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) {
    write(from.rows[i], rows[i]);
    add_to(body, from.rows[i].keys, from.rows[i].count);
  }
}

query read(schema::Query::Reader from, body_reader& body) {
  query made{.step = read(from.getStep()),
             .latest = from.getLatest(),
             .ranges = read_list<range>(from.getRanges(), pieces_max, "ranges"),
             .rows = {}};
  std::uint64_t floats = 0;
  for (const range& x : made.ranges)
    floats += x.count; // At most 2^40 each, of at most 2^18 ranges.
  if (floats > body_bytes_max / sizeof(float))
    throw rejected{"a query for more values than one message can bring"};
  for (const auto& x : read_rows(from.getRows())) {
    made.rows.push_back(x.where);
    made.rows.back().keys = body.take_keys(x.where.count);
  }
  return made;
}

void write(const receipt& from, schema::Receipt::Builder to) {
  to.setVersion(from.version);
  to.setDuplicate(from.duplicate);
}

receipt read(schema::Receipt::Reader from) { return {from.getVersion(), from.getDuplicate()}; }

void write(const values& from, schema::Values::Builder to, body_parts& body) {
  to.setVersion(from.version);
  write_pieces(from.pieces, to.initPieces(static_cast<unsigned>(from.pieces.size())), body);
  auto rows = to.initRows(static_cast<unsigned>(from.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) {
    write(from.rows[i].where, rows[i]);
    add_to(body, from.rows[i].values, from.rows[i].where.floats());
  }
  pad(body);
}

values read(schema::Values::Reader from, body_reader& body) {
  values made{.version = from.getVersion(),
              .pieces = read_pieces(from.getPieces(), body),
              .rows = read_rows(from.getRows())};
  for (auto& x : made.rows)
    x.values = body.take(x.where.floats());
  return made;
}

void write(const request_message& from, schema::Request::Builder to, body_parts& body) {
  assert(from.what.push || from.what.pull);
  to.setNumber(from.number);
  if (from.what.push)
    write(*from.what.push, to.initPush(), body);
  if (from.what.pull)
    write(*from.what.pull, to.initPull(), body);
}

request_message read(schema::Request::Reader from, body_reader& body) {
  request_message made{from.getNumber(), {}};
  if (from.hasPush())
    made.what.push = read(from.getPush(), body);
  if (from.hasPull())
    made.what.pull = read(from.getPull(), body);
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
  write(from.what, to.initWhy(), text_bytes_max);
}

failure_message read(schema::FailureReply::Reader from) {
  return {from.getNumber(), read(from.getWhy())};
}

void write(const answer_message& from, schema::Answer::Builder to, body_parts& body) {
  if (const auto* came = std::get_if<reply_message>(&from))
    write(*came, to.initReply(), body);
  else
    write(std::get<failure_message>(from), to.initFailure());
}

answer_message read(schema::Answer::Reader from, body_reader& body) {
  switch (from.which()) {
  case schema::Answer::REPLY: return read(from.getReply(), body);
  case schema::Answer::FAILURE: return read(from.getFailure());
  }
  throw rejected{"an answer of an unknown kind"};
}

namespace {

template <class Item, class List>
void write_items(const item_list<Item>& from, List to, body_parts& body) {
  for (unsigned i = 0; i < to.size(); ++i)
    write(from.items[i], to[i], body);
}

/// What a message brings for one item begins at a multiple of 8, as it does at the first.
template <class Item, class List>
item_list<Item> read_items(const List& from, const char* name, body_reader& body) {
  check_count(from.size(), list_items_max, name);
  if (from.size() == 0)
    throw rejected{std::string{"no "} + name};
  item_list<Item> made;
  made.items.reserve(from.size());
  for (const auto each : from) {
    made.items.push_back(read(each, body));
    body.skip_padding();
  }
  return made;
}

} // namespace

void write(const request_list& from, capnp::List<schema::Request>::Builder to, body_parts& body) {
  write_items(from, to, body);
}

void write(const answer_list& from, capnp::List<schema::Answer>::Builder to, body_parts& body) {
  write_items(from, to, body);
}

request_list read(capnp::List<schema::Request>::Reader from, body_reader& body) {
  return read_items<request_message>(from, "requests", body);
}

answer_list read(capnp::List<schema::Answer>::Reader from, body_reader& body) {
  return read_items<answer_message>(from, "answers", body);
}

} // namespace troupe::wire::detail
