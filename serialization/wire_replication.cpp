// Converts configurations of chains and messages between replicas to Cap'n Proto structs and back.
#include "serialization/detail/parts.hpp"

namespace troupe::wire::detail {

static void write(const chain_config& from, schema::Config::Builder to) {
  to.setConfig(from.config.value);
  to.setGeneration(from.generation.value);
  write_list(from.members, to.initMembers(static_cast<unsigned>(from.members.size())));
  if (from.joiner)
    detail::write(*from.joiner, to.initJoiner());
}

static chain_config read(schema::Config::Reader from) {
  chain_config made{.config = {from.getConfig()},
                    .generation = {from.getGeneration()},
                    .members = read_list<member_id>(from.getMembers(), members_max, "members"),
                    .joiner = {}};
  if (from.hasJoiner())
    made.joiner = detail::read(from.getJoiner());
  return made;
}

static void write(const entry_message& from, schema::Entry::Builder to, body_parts& body) {
  to.setConfig(from.place.config.value);
  to.setIndex(from.place.index);
  to.setCommitted(from.place.committed);
  auto pushes = to.initPushes(static_cast<unsigned>(from.entry.pushes.size()));
  for (unsigned i = 0; i < pushes.size(); ++i)
    detail::write(*from.entry.pushes[i], {}, pushes[i], body);
  const auto& tables = from.entry.tables;
  write_numbers(tables, to.initTables(static_cast<unsigned>(tables.size())));
}

static entry_message read(schema::Entry::Reader from, body_reader& body) {
  entry_message made{{{from.getConfig()}, from.getIndex(), from.getCommitted()},
                     {{}, read_numbers<table_id>(from.getTables())}};
  check_count(made.entry.tables.size(), tables_max, "tables");
  check_count(from.getPushes().size(), workers_max, "pushes of an entry");
  for (const auto push : from.getPushes()) {
    made.entry.pushes.push_back(std::make_shared<const push_request>(detail::read(push, {}, body)));
    body.skip_padding();
    if (!made.entry.pushes.back()->packed.empty())
      throw rejected{"an entry with packed pieces"};
  }
  if (made.entry.pushes.empty())
    throw rejected{"an entry without pushes"};
  return made;
}

template <class Message>
static void write_mark(const Message& from, std::uint64_t index, schema::Mark::Builder to) {
  to.setConfig(from.config.value);
  to.setIndex(index);
}

static void write(const held_version& from, schema::Held::Builder to) {
  to.setPartition(from.partition.value);
  to.setTable(from.table.value);
  to.setNumber(from.number);
  to.setVersion(from.version);
}

static void write(const copy_request& from, schema::CopyRequest::Builder to) {
  to.setConfig(from.config.value);
  to.setPart(from.part);
  auto held = to.initHeld(static_cast<unsigned>(from.held.size()));
  for (unsigned i = 0; i < held.size(); ++i)
    write(from.held[i], held[i]);
}

static copy_request read(schema::CopyRequest::Reader from) {
  copy_request made{{from.getConfig()}, from.getPart(), {}};
  check_count(from.getHeld().size(), pieces_max, "held blocks");
  for (const auto x : from.getHeld())
    made.held.push_back({{x.getPartition()}, {x.getTable()}, x.getNumber(), x.getVersion()});
  return made;
}

static void write(const copy_part& from, schema::CopyPart::Builder to, body_parts& body) {
  const auto& image = from.image;
  to.setConfig(from.config.value);
  to.setIndex(from.index);
  to.setPart(from.part);
  to.setParts(from.parts);
  to.setClockMax(from.clock_max);
  to.setPartition(image.partition.value);
  to.setVersion(image.version);
  write_list(image.applied, to.initApplied(static_cast<unsigned>(image.applied.size())));
  auto blocks = to.initBlocks(static_cast<unsigned>(image.blocks.size()));
  for (unsigned i = 0; i < blocks.size(); ++i) {
    const auto& x = image.blocks[i];
    blocks[i].setTable(x.table.value);
    blocks[i].setBlock(x.block);
    blocks[i].setVersion(x.version);
    blocks[i].setSteps(x.steps);
    blocks[i].setCount(x.count);
    blocks[i].setStateCount(x.state_count);
  }
  auto slabs = to.initSlabs(static_cast<unsigned>(image.slabs.size()));
  for (unsigned i = 0; i < slabs.size(); ++i) {
    const auto& x = image.slabs[i];
    slabs[i].setTable(x.table.value);
    slabs[i].setSlab(x.slab);
    slabs[i].setVersion(x.version);
    slabs[i].setCount(x.count);
    slabs[i].setRowFloats(x.row_floats);
    slabs[i].setSteps(x.steps != nullptr);
    body.add(x.keys, x.count);
    if (x.steps)
      body.add(x.steps, x.count);
  }
  for (const auto& x : image.blocks) {
    body.add(x.values, x.count);
    body.add(x.state, x.state_count);
  }
  for (const auto& x : image.slabs)
    body.add(x.rows, x.count * x.row_floats);
  body.pad();
}

static copy_part read(schema::CopyPart::Reader from, body_reader& body) {
  copy_part made{.config = {from.getConfig()},
                 .index = from.getIndex(),
                 .part = from.getPart(),
                 .parts = from.getParts(),
                 .image = {{from.getPartition()},
                           from.getVersion(),
                           read_list<batch_set>(from.getApplied(), tables_max, "tables"),
                           {},
                           {}},
                 .clock_max = from.getClockMax()};
  check_count(from.getBlocks().size(), pieces_max, "blocks");
  check_count(from.getSlabs().size(), pieces_max, "slabs");
  for (const auto x : from.getSlabs()) {
    slab_image slab{{x.getTable()}, x.getSlab(),      x.getVersion(), x.getCount(),
                    nullptr,        x.getRowFloats(), nullptr,        nullptr};
    if (slab.count > elements_max || slab.row_floats > elements_max)
      throw rejected{"a slab that no table has"};
    slab.keys = body.take_keys(slab.count);
    if (x.getSteps())
      slab.steps = body.take_keys(slab.count);
    made.image.slabs.push_back(std::move(slab));
  }
  for (const auto x : from.getBlocks())
    made.image.blocks.push_back({{x.getTable()},
                                 x.getBlock(),
                                 x.getVersion(),
                                 x.getSteps(),
                                 x.getCount(),
                                 body.take(x.getCount()),
                                 x.getStateCount(),
                                 body.take(x.getStateCount())});
  for (auto& x : made.image.slabs) {
    if (x.row_floats != 0 && x.count > body_bytes_max / x.row_floats)
      throw rejected{"a slab with more rows than a message can bring"};
    x.rows = body.take(x.count * x.row_floats);
  }
  return made;
}

void write(const chain_metadata& from, schema::Record::Builder to) {
  write(from.active, to.initActive());
  to.setBaseCheckpoint(from.base_checkpoint);
  if (from.proposed)
    write(*from.proposed, to.initProposed());
}

chain_metadata read(schema::Record::Reader from) {
  chain_metadata made{
    .active = read(from.getActive()), .base_checkpoint = from.getBaseCheckpoint(), .proposed = {}};
  if (from.hasProposed())
    made.proposed = read(from.getProposed());
  return made;
}

void write(const chain_status& from, schema::Status::Builder to) {
  to.setGeneration(from.generation.value);
  to.setConfig(from.config.value);
  to.setSealed(from.sealed.value);
  to.setComplete(from.complete);
  to.setJoinerSynced(from.joiner_synced);
  to.setStalled(from.stalled);
}

chain_status read(schema::Status::Reader from) {
  return {.generation = {from.getGeneration()},
          .config = {from.getConfig()},
          .sealed = {from.getSealed()},
          .complete = from.getComplete(),
          .joiner_synced = from.getJoinerSynced(),
          .stalled = from.getStalled()};
}

void write(const replica_message& from, schema::Peer::Builder to, body_parts& body) {
  to.setShard(from.shard.value);
  write(from.from, to.initFrom());
  if (const auto* entry = std::get_if<entry_message>(&from.what))
    write(*entry, to.initEntry(), body);
  else if (const auto* committed = std::get_if<committed_message>(&from.what))
    write_mark(*committed, committed->index, to.initCommitted());
  else if (const auto* joined = std::get_if<joined_message>(&from.what))
    write_mark(*joined, joined->last, to.initJoined());
  else if (const auto* asked = std::get_if<copy_request>(&from.what))
    write(*asked, to.initCopyRequest());
  else
    write(std::get<copy_part>(from.what), to.initCopyPart(), body);
}

replica_message read(schema::Peer::Reader from, body_reader& body) {
  replica_message made{{from.getShard()}, read(from.getFrom()), {}};
  switch (from.which()) {
  case schema::Peer::ENTRY: made.what = read(from.getEntry(), body); return made;
  case schema::Peer::COMMITTED:
    made.what =
      committed_message{{from.getCommitted().getConfig()}, from.getCommitted().getIndex()};
    return made;
  case schema::Peer::JOINED:
    made.what = joined_message{{from.getJoined().getConfig()}, from.getJoined().getIndex()};
    return made;
  case schema::Peer::COPY_REQUEST: made.what = read(from.getCopyRequest()); return made;
  case schema::Peer::COPY_PART: made.what = read(from.getCopyPart(), body); return made;
  }
  throw rejected{"a message of replicas of an unknown kind"};
}

} // namespace troupe::wire::detail
