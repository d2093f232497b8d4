// Converts pushes, pulls and their replies, with their values, to Cap'n Proto structs and back.
#include "serialization/detail/parts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace troupe::wire::detail {

namespace {

void write_pieces(const std::vector<piece>& from, capnp::List<schema::Range>::Builder to,
                  body_parts& body) {
  for (unsigned i = 0; i < to.size(); ++i) {
    write(from[i].where, to[i]);
    body.add(from[i].values, from[i].where.count);
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

void write_packed(const std::vector<packed_piece>& from, capnp::List<schema::Packed>::Builder to,
                  body_parts& body) {
  if (from.empty())
    return;
  body.pad();
  for (unsigned i = 0; i < to.size(); ++i) {
    write(from[i].where, to[i].initWhere());
    to[i].setHow(static_cast<std::uint8_t>(from[i].how));
    to[i].setBytes(from[i].size_bytes);
    body.push_back({from[i].bytes, from[i].span()});
  }
}

/// Reads packed pieces that fit into one message. Their bytes are checked by the decoding code
/// (actors/tables/packing.hpp).
std::vector<packed_piece> read_packed(capnp::List<schema::Packed>::Reader from, body_reader& body) {
  check_count(from.size(), pieces_max, "packed pieces");
  std::vector<packed_piece> packed;
  packed.reserve(from.size());
  std::uint64_t floats = 0;
  for (const auto element : from) {
    packed_piece made{read(element.getWhere()),
                      read_enum(element.getHow(), encoding::randomk, "encoding"),
                      element.getBytes(), nullptr};
    floats += made.where.count; // At most 2^40 for each of at most 2^18 pieces.
    if (made.how == encoding::f32 || made.size_bytes % 8 != 0
        || floats > body_bytes_max / sizeof(float))
      throw rejected{"packed pieces that nobody makes"};
    made.bytes = body.take_bytes(made.size_bytes);
    packed.push_back(std::move(made));
  }
  return packed;
}

bool is_named(std::span<const key_use> keys, std::size_t list) {
  return !keys.empty() && keys[list].way == key_use::how::named;
}

const range& where_of(const range& x) { return x; }
const range& where_of(const piece& x) { return x.where; }
range& where_of(range& x) { return x; }
range& where_of(piece& x) { return x.where; }
const range& where_of(const packed_piece& x) { return x.where; }
range& where_of(packed_piece& x) { return x.where; }

/// Writes no list if all stamps are 0, as they are except in deltas.
template <class Stamped, class Init>
void write_stamps(const std::vector<Stamped>& from, Init init) {
  if (std::ranges::all_of(from, [](const auto& x) { return where_of(x).stamp == 0; }))
    return;
  auto to = init(static_cast<unsigned>(from.size()));
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, where_of(from[i]).stamp);
}

template <class Stamped>
void read_stamps(capnp::List<std::uint64_t>::Reader from, std::vector<Stamped>& to) {
  if (from.size() != 0 && from.size() != to.size())
    throw rejected{"stamps of other ranges: " + std::to_string(from.size()) + ", not "
                   + std::to_string(to.size())};
  for (unsigned i = 0; i < from.size(); ++i)
    where_of(to[i]).stamp = from[i];
}

constexpr std::uint32_t key_ways = 4; ///< Number of key_use::how codes in a number of Request.keys.

std::vector<key_use> read_keys(capnp::List<std::uint32_t>::Reader from) {
  check_count(from.size(), 2 * tables_max, "lists of keys");
  std::vector<key_use> keys;
  keys.reserve(from.size());
  for (const std::uint32_t code : from) {
    const key_use read{static_cast<key_use::how>(code % key_ways), code / key_ways};
    if (code % key_ways > static_cast<std::uint32_t>(key_use::how::named)
        || (read.way == key_use::how::brought && read.slot != 0))
      throw rejected{"keys that come in no known way: " + std::to_string(code)};
    keys.push_back(read);
  }
  return keys;
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

byte_ptr body_reader::take_bytes(std::size_t size_bytes) {
  const auto first = (taken_bytes_ + 7) / 8 * 8;
  if (first > size_bytes_ || size_bytes > size_bytes_ - first)
    throw rejected{"the packed pieces have more bytes than the message brings"};
  taken_bytes_ = first + size_bytes;
  return {body_, body_.get() + first};
}

key_ptr body_reader::take_keys(std::uint64_t count) {
  const auto first = (taken_bytes_ + 7) / 8 * 8;
  if (first > size_bytes_ || count > (size_bytes_ - first) / sizeof(std::uint64_t))
    throw rejected{"the rows have more keys than the message brings"};
  if (count == 0)
    return {};
  // Copied: a key is used after its check, and the sender may still change shared memory.
  const auto size = static_cast<std::size_t>(count) * sizeof(std::uint64_t);
  const std::shared_ptr<std::uint64_t[]> keys{new std::uint64_t[count]};
  std::memcpy(keys.get(), body_.get() + first, size);
  taken_bytes_ = first + size;
  return {keys, keys.get()};
}

void body_parts::pad() {
  static constexpr std::array<std::byte, 8> padding{};
  if (const auto odd = size_bytes_ % padding.size(); odd != 0)
    push_back({nullptr, std::span{padding}.first(padding.size() - odd)});
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
  to.setIsPartial(from.is_partial);
}

step_header read(schema::Step::Reader from) {
  return {.worker = {from.getWorker()},
          .incarnation = {from.getIncarnation()},
          .generation = {from.getGeneration()},
          .batch = {from.getBatch()},
          .clock = from.getClock(),
          .is_partial = from.getIsPartial()};
}

void write(const push_request& from, std::span<const key_use> keys, schema::PushRequest::Builder to,
           body_parts& body) {
  write(from.step, to.initStep());
  write_numbers(from.tables, to.initTables(static_cast<unsigned>(from.tables.size())));
  to.setBaseVersion(from.base_version);
  to.setGradientNorm(from.gradient_norm);
  auto rows = to.initRows(static_cast<unsigned>(from.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) {
    write(from.rows[i].where, rows[i]);
    if (!is_named(keys, i))
      body.add(from.rows[i].where.keys, from.rows[i].where.count);
  }
  write_pieces(from.pieces, to.initPieces(static_cast<unsigned>(from.pieces.size())), body);
  for (const auto& x : from.rows)
    body.add(x.values, x.where.floats());
  write_packed(from.packed, to.initPacked(static_cast<unsigned>(from.packed.size())), body);
  body.pad();
  write_list(from.others, to.initOthers(static_cast<unsigned>(from.others.size())));
}

push_request read(schema::PushRequest::Reader from, std::span<const key_use> keys,
                  body_reader& body) {
  const auto tables = from.getTables();
  check_count(tables.size(), tables_max, "tables");
  push_request made{.step = read(from.getStep()),
                    .tables = read_numbers<table_id>(tables),
                    .base_version = from.getBaseVersion(),
                    .gradient_norm = from.getGradientNorm(),
                    .pieces = {},
                    .rows = read_rows(from.getRows()),
                    .others =
                      read_list<step_header>(from.getOthers(), workers_max, "steps of a sum")};
  for (std::size_t i = 0; i < made.rows.size(); ++i)
    if (!is_named(keys, i))
      made.rows[i].where.keys = body.take_keys(made.rows[i].where.count);
  made.pieces = read_pieces(from.getPieces(), body);
  for (auto& x : made.rows)
    x.values = body.take(x.where.floats());
  made.packed = read_packed(from.getPacked(), body);
  return made;
}

void write(const pull_request& from, std::span<const key_use> keys, schema::PullRequest::Builder to,
           body_parts& body) {
  write(from.step, to.initStep());
  to.setLatest(from.latest);
  write_list(from.ranges, to.initRanges(static_cast<unsigned>(from.ranges.size())));
  to.setDelta(from.delta);
  to.setSeenGeneration(from.seen.generation.value);
  to.setSeenVersion(from.seen.version);
  to.setAnywhere(from.anywhere);
  to.setPackedAs(static_cast<std::uint8_t>(from.packed_as));
  write_list(from.others, to.initOthers(static_cast<unsigned>(from.others.size())));
  write_stamps(from.ranges, [&](unsigned size) { return to.initStamps(size); });
  auto rows = to.initRows(static_cast<unsigned>(from.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) {
    write(from.rows[i], rows[i]);
    if (!is_named(keys, i))
      body.add(from.rows[i].keys, from.rows[i].count);
  }
}

pull_request read(schema::PullRequest::Reader from, std::span<const key_use> keys,
                  body_reader& body) {
  pull_request made{
    .step = read(from.getStep()),
    .latest = from.getLatest(),
    .ranges = read_list<range>(from.getRanges(), pieces_max, "ranges"),
    .rows = {},
    .delta = from.getDelta(),
    .seen = {{from.getSeenGeneration()}, from.getSeenVersion()},
    .anywhere = from.getAnywhere(),
    .packed_as = read_enum(from.getPackedAs(), encoding::int8, "encoding of values"),
    .others = read_list<step_header>(from.getOthers(), workers_max, "steps of a pull")};
  read_stamps(from.getStamps(), made.ranges);
  std::uint64_t floats = 0;
  for (const range& x : made.ranges)
    floats += x.count; // At most 2^40 for each of at most 2^18 ranges.
  if (floats > body_bytes_max / sizeof(float))
    throw rejected{"a query for more values than one message can bring"};
  for (const auto& x : read_rows(from.getRows())) {
    made.rows.push_back(x.where);
    if (!is_named(keys, made.rows.size() - 1))
      made.rows.back().keys = body.take_keys(x.where.count);
  }
  return made;
}

void write(const push_reply& from, schema::PushReply::Builder to) {
  to.setVersion(from.version);
  to.setDuplicate(from.duplicate);
}

push_reply read(schema::PushReply::Reader from) { return {from.getVersion(), from.getDuplicate()}; }

void write(const pull_reply& from, schema::PullReply::Builder to, body_parts& body) {
  to.setVersion(from.version);
  write_pieces(from.pieces, to.initPieces(static_cast<unsigned>(from.pieces.size())), body);
  auto rows = to.initRows(static_cast<unsigned>(from.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) {
    write(from.rows[i].where, rows[i]);
    body.add(from.rows[i].values, from.rows[i].where.floats());
  }
  write_stamps(from.pieces, [&](unsigned size) { return to.initStamps(size); });
  write_list(from.unchanged, to.initUnchanged(static_cast<unsigned>(from.unchanged.size())));
  write_packed(from.packed, to.initPacked(static_cast<unsigned>(from.packed.size())), body);
  write_stamps(from.packed, [&](unsigned size) { return to.initPackedStamps(size); });
  body.pad();
}

pull_reply read(schema::PullReply::Reader from, body_reader& body) {
  pull_reply made{.version = from.getVersion(),
                  .pieces = read_pieces(from.getPieces(), body),
                  .rows = read_rows(from.getRows()),
                  .unchanged = read_list<range>(from.getUnchanged(), pieces_max, "ranges")};
  read_stamps(from.getStamps(), made.pieces);
  for (auto& x : made.rows)
    x.values = body.take(x.where.floats());
  made.packed = read_packed(from.getPacked(), body);
  read_stamps(from.getPackedStamps(), made.packed);
  return made;
}

void write(const request_message& from, schema::Request::Builder to, body_parts& body) {
  assert(from.what.push || from.what.pull);
  to.setNumber(from.number);
  to.setShard(from.what.shard.value);
  const std::span keys{from.keys};
  const std::size_t of_push = keys.empty() || !from.what.push ? 0 : from.what.push->rows.size();
  if (from.what.push)
    write(*from.what.push, keys.first(of_push), to.initPush(), body);
  if (from.what.pull)
    write(*from.what.pull, keys.subspan(of_push), to.initPull(), body);
  if (!keys.empty()) {
    auto codes = to.initKeys(static_cast<unsigned>(keys.size()));
    for (unsigned i = 0; i < codes.size(); ++i)
      codes.set(i, keys[i].slot * key_ways + static_cast<std::uint32_t>(keys[i].way));
  }
  if (!from.forgotten.empty())
    write_numbers(from.forgotten, to.initForgotten(static_cast<unsigned>(from.forgotten.size())));
}

request_message read(schema::Request::Reader from, body_reader& body) {
  request_message made{from.getNumber(), {}, read_keys(from.getKeys()), {}};
  made.what.shard = {from.getShard()};
  const std::size_t of_push = from.hasPush() ? from.getPush().getRows().size() : 0;
  const std::size_t of_pull = from.hasPull() ? from.getPull().getRows().size() : 0;
  const std::span<const key_use> keys{made.keys};
  if (!keys.empty() && keys.size() != of_push + of_pull)
    throw rejected{"keys of other lists: " + std::to_string(keys.size()) + ", not "
                   + std::to_string(of_push + of_pull)};
  if (from.hasPush())
    made.what.push = read(from.getPush(), keys.first(keys.empty() ? 0 : of_push), body);
  if (from.hasPull())
    made.what.pull = read(from.getPull(), keys.subspan(keys.empty() ? 0 : of_push), body);
  made.forgotten = read_numbers<std::uint32_t>(from.getForgotten());
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
  to.setGeneration(from.what.generation.value);
}

reply_message read(schema::Reply::Reader from, body_reader& body) {
  reply_message made{from.getNumber(), {}};
  if (from.hasPushed())
    made.what.pushed = read(from.getPushed());
  if (from.hasPulled())
    made.what.pulled = read(from.getPulled(), body);
  made.what.generation = {from.getGeneration()};
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

/// Reads a list. The values of each item begin at a multiple of 8, as those of the first item do.
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
