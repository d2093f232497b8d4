// Converts desired states of members to Cap'n Proto structs and back.
#include "serialization/detail/parts.hpp"

namespace troupe::wire::detail {

static void write(const view& from, schema::View::Builder to) {
  to.setConfig(from.config.value);
  to.setGeneration(from.generation.value);
  write_list(from.chains, to.initChains(static_cast<unsigned>(from.chains.size())));
  write_numbers(from.shard_of, to.initShardOf(static_cast<unsigned>(from.shard_of.size())));
}

static view read(schema::View::Reader from) {
  check_count(from.getShardOf().size(), partitions_max, "partitions");
  return {.config = {from.getConfig()},
          .generation = {from.getGeneration()},
          .chains = read_list<chain_entry>(from.getChains(), partitions_max, "chains"),
          .shard_of = read_numbers<shard_id>(from.getShardOf())};
}

static void write(const desired_worker& from, schema::DesiredWorker::Builder to) {
  write(from.view, to.initView());
  write_list(from.leases, to.initLeases(static_cast<unsigned>(from.leases.size())));
  to.setStartClock(from.start_clock);
  to.setAdmitted(from.admitted);
}

static desired_worker read(schema::DesiredWorker::Reader from) {
  return {.view = read(from.getView()),
          .leases = read_list<lease>(from.getLeases(), leases_max, "leases"),
          .start_clock = from.getStartClock(),
          .admitted = from.getAdmitted()};
}

static void write(const desired_actor& from, schema::DesiredActor::Builder to) {
  write(from.view, to.initView());
  to.setWindDown(from.wind_down);
}

static desired_actor read(schema::DesiredActor::Reader from) {
  return {.view = read(from.getView()), .wind_down = from.getWindDown()};
}

static void write(const desired_server& from, schema::DesiredServer::Builder to) {
  if (from.job != job_spec{})
    detail::write(from.job, to.initJob());
  to.setGeneration(from.generation.value);
  write_list(from.chains, to.initChains(static_cast<unsigned>(from.chains.size())));
  write_numbers(from.shard_of, to.initShardOf(static_cast<unsigned>(from.shard_of.size())));
  to.setHeardNs(from.heard_ns);
  write_list(from.workers, to.initWorkers(static_cast<unsigned>(from.workers.size())));
  to.setCheckpoint(from.checkpoint);
  to.setCheckpointClock(from.checkpoint_clock);
}

static desired_server read(schema::DesiredServer::Reader from) {
  check_count(from.getShardOf().size(), partitions_max, "partitions");
  return {.job = from.hasJob() ? detail::read(from.getJob()) : job_spec{},
          .generation = {from.getGeneration()},
          .chains = read_list<desired_chain>(from.getChains(), partitions_max, "chains"),
          .shard_of = read_numbers<shard_id>(from.getShardOf()),
          .heard_ns = from.getHeardNs(),
          .workers = read_list<clock_entry>(from.getWorkers(), clocks_max, "workers"),
          .checkpoint = from.getCheckpoint(),
          .checkpoint_clock = from.getCheckpointClock()};
}

void write(const event_field& from, schema::JobEvent::Field::Builder to) {
  std::string scratch;
  to.setName(cut_text(from.name, scratch));
  if (const auto* count = std::get_if<std::uint64_t>(&from.value))
    to.setCount(*count);
  else if (const auto* number = std::get_if<double>(&from.value))
    to.setNumber(*number);
  else
    to.setText(cut_text(std::get<std::string>(from.value), scratch));
}

event_field read(schema::JobEvent::Field::Reader from) {
  event_field made{read_text(from.getName()), std::uint64_t{0}};
  switch (from.which()) {
  case schema::JobEvent::Field::COUNT: made.value = from.getCount(); return made;
  case schema::JobEvent::Field::NUMBER: made.value = from.getNumber(); return made;
  case schema::JobEvent::Field::TEXT: made.value = read_text(from.getText()); return made;
  }
  throw rejected{"an event's field of an unknown type"};
}

void write(const job_event& from, schema::JobEvent::Builder to) {
  to.setKind(static_cast<std::uint16_t>(from.kind));
  write_list(from.fields, to.initFields(static_cast<unsigned>(from.fields.size())));
}

job_event read(schema::JobEvent::Reader from) {
  return {.kind = read_enum(from.getKind(), static_cast<event_kind>(event_kinds - 1), "event"),
          .fields =
            read_list<event_field>(from.getFields(), event_fields_max, "fields of an event")};
}

static void write(const job_status& from, schema::JobStatus::Builder to) {
  std::string scratch;
  write(from.view, to.initView());
  to.setPhase(static_cast<std::uint8_t>(from.phase));
  to.setBatchesDone(from.batches_done);
  to.setCheckpoint(from.checkpoint);
  write_list(from.members, to.initMembers(static_cast<unsigned>(from.members.size())));
  write_list(from.events, to.initEvents(static_cast<unsigned>(from.events.size())));
  to.setEventsTotal(from.events_total);
  write_numbers(from.servers, to.initServers(static_cast<unsigned>(from.servers.size())));
  write_numbers(from.draining, to.initDraining(static_cast<unsigned>(from.draining.size())));
  if (from.job != job_spec{})
    detail::write(from.job, to.initJob());
  to.setCoordinator(from.coordinator);
  to.setDirectoryMark(from.directory_mark);
}

static job_status read(schema::JobStatus::Reader from) {
  job_status made{.view = read(from.getView()),
                  .phase = read_enum(from.getPhase(), job_phase::stopped, "phase of the job"),
                  .batches_done = from.getBatchesDone(),
                  .checkpoint = from.getCheckpoint(),
                  .members = read_list<member_status>(from.getMembers(), members_max, "members"),
                  .servers = read_numbers<server_id>(from.getServers()),
                  .draining = read_numbers<server_id>(from.getDraining()),
                  .events = read_list<job_event>(from.getEvents(), events_max, "events"),
                  .events_total = from.getEventsTotal(),
                  .job = from.hasJob() ? detail::read(from.getJob()) : job_spec{},
                  .coordinator = from.getCoordinator(),
                  .directory_mark = from.getDirectoryMark()};
  check_count(from.getEventTexts().size(), events_max, "events");
  for (const auto text : from.getEventTexts())
    made.events.push_back(note_of(read_text(text)));
  return made;
}

void write(const chain_entry& from, schema::ChainEntry::Builder to) {
  to.setShard(from.shard.value);
  write(from.head, to.initHead());
  to.setServing(from.serving);
  write_list(from.others, to.initOthers(static_cast<unsigned>(from.others.size())));
}

chain_entry read(schema::ChainEntry::Reader from) {
  return {.shard = {from.getShard()},
          .head = read(from.getHead()),
          .serving = from.getServing(),
          .others = read_list<member_id>(from.getOthers(), members_max, "others")};
}

void write(const member_address& from, schema::MemberAddress::Builder to) {
  std::string scratch;
  write(from.member, to.initMember());
  to.setAddress(cut_text(from.address, scratch));
}

member_address read(schema::MemberAddress::Reader from) {
  return {.member = read(from.getMember()), .address = read_text(from.getAddress())};
}

void write(const desired_chain& from, schema::DesiredChain::Builder to) {
  to.setShard(from.shard.value);
  write(from.record, to.initRecord());
}

desired_chain read(schema::DesiredChain::Reader from) {
  return {.shard = {from.getShard()}, .record = read(from.getRecord())};
}

void write(const member_status& from, schema::MemberStatus::Builder to) {
  write(from.member, to.initMember());
  to.setState(static_cast<std::uint8_t>(from.state));
  to.setRssBytesMax(from.rss_bytes_max);
  to.setClock(from.clock);
  to.setUpdatesRolledBack(from.updates_rolled_back);
  write(from.worker, to.initWorker());
  write(from.server, to.initServer());
  write(from.actor, to.initActor());
}

member_status read(schema::MemberStatus::Reader from) {
  return {.member = read(from.getMember()),
          .state = read_enum(from.getState(), member_state::evicted, "state of a member"),
          .rss_bytes_max = from.getRssBytesMax(),
          .clock = from.getClock(),
          .updates_rolled_back = from.getUpdatesRolledBack(),
          .worker = read(from.getWorker()),
          .server = read(from.getServer()),
          .actor = read(from.getActor())};
}

// One overload for each alternative of the body: the compiler refuses a body without one.
static void put(const desired_worker& body, schema::DesiredState::Builder to) {
  write(body, to.initWorker());
}
static void put(const desired_server& body, schema::DesiredState::Builder to) {
  write(body, to.initServer());
}
static void put(const job_status& body, schema::DesiredState::Builder to) {
  write(body, to.initObserver());
}
static void put(const desired_actor& body, schema::DesiredState::Builder to) {
  write(body, to.initActor());
}

void write(const desired_state& from, schema::DesiredState::Builder to) {
  write(from.to, to.initTo());
  to.setTerm(from.term);
  to.setSequence(from.sequence);
  to.setStop(from.stop);
  write_failure(from.failed, to);
  write_list(from.listeners, to.initListeners(static_cast<unsigned>(from.listeners.size())));
  std::visit([&](const auto& body) { put(body, to); }, from.body);
}

desired_state read(schema::DesiredState::Reader from) {
  desired_state made{.to = read(from.getTo()),
                     .term = from.getTerm(),
                     .sequence = from.getSequence(),
                     .stop = from.getStop(),
                     .failed = read_failure(from),
                     .body = {},
                     .listeners = read_list<member_address>(from.getListeners(), members_max,
                                                            "members that listen")};
  switch (from.which()) {
  case schema::DesiredState::WORKER: made.body = read(from.getWorker()); return made;
  case schema::DesiredState::SERVER: made.body = read(from.getServer()); return made;
  case schema::DesiredState::OBSERVER: made.body = read(from.getObserver()); return made;
  case schema::DesiredState::ACTOR: made.body = read(from.getActor()); return made;
  }
  throw rejected{"a desired state of an unknown kind"};
}

} // namespace troupe::wire::detail
