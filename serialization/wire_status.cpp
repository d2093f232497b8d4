// Converts statuses of members (`report`) to Cap'n Proto structs and back.
#include "serialization/detail/parts.hpp"

namespace troupe::wire::detail {

static void write(const worker_status& from, schema::WorkerStatus::Builder to) {
  std::string scratch;
  to.setGeneration(from.generation.value);
  write_list(from.leases, to.initLeases(static_cast<unsigned>(from.leases.size())));
  to.setClock(from.clock);
  detail::write(from.counters, to.initCounters());
  to.setHost(cut_text(from.host, scratch));
  write_failure(from.failed, to);
}

static worker_status read(schema::WorkerStatus::Reader from) {
  return {.generation = {from.getGeneration()},
          .leases = read_list<lease_progress>(from.getLeases(), leases_max, "leases"),
          .clock = from.getClock(),
          .counters = detail::read(from.getCounters()),
          .host = read_text(from.getHost()),
          .failed = read_failure(from)};
}

static void write(const checkpoint_part& from, schema::CheckpointPart::Builder to) {
  to.setCheckpoint(from.checkpoint);
  to.setShard(from.shard.value);
  write_list(from.files, to.initFiles(static_cast<unsigned>(from.files.size())));
  to.setVersion(from.version);
}

static checkpoint_part read(schema::CheckpointPart::Reader from) {
  return {.checkpoint = from.getCheckpoint(),
          .shard = {from.getShard()},
          .files = read_list<file_entry>(from.getFiles(), files_max, "files"),
          .version = from.getVersion()};
}

static void write(const server_status& from, schema::ServerStatus::Builder to) {
  to.setClockNs(from.clock_ns);
  write_list(from.chains, to.initChains(static_cast<unsigned>(from.chains.size())));
  detail::write(from.counters, to.initCounters());
}

static server_status read(schema::ServerStatus::Reader from) {
  return {.clock_ns = from.getClockNs(),
          .chains = read_list<replica_status>(from.getChains(), partitions_max, "chains"),
          .counters = detail::read(from.getCounters())};
}

static void write(const observer_status& from, schema::ObserverStatus::Builder to) {
  auto deaths = to.initDeaths(static_cast<unsigned>(from.deaths.size()));
  for (unsigned i = 0; i < deaths.size(); ++i)
    detail::write(from.deaths[i].member, deaths[i]);
  to.setDone(from.done);
  to.setStop(from.stop);
  write_failure(from.failed, to);
  const auto& [add, drain] = from.resize;
  write_numbers(add, to.initAdd(static_cast<unsigned>(add.size())));
  write_numbers(drain, to.initDrain(static_cast<unsigned>(drain.size())));
}

static observer_status read(schema::ObserverStatus::Reader from) {
  observer_status made{
    .deaths = {},
    .done = from.getDone(),
    .stop = from.getStop(),
    .failed = read_failure(from),
    .resize = {read_numbers<server_id>(from.getAdd()), read_numbers<server_id>(from.getDrain())}};
  for (const auto& member : read_list<member_id>(from.getDeaths(), deaths_max, "deaths"))
    made.deaths.push_back({member});
  return made;
}

static void write(const actor_status& from, schema::ActorStatus::Builder to) {
  std::string scratch;
  detail::write(from.counters, to.initCounters());
  to.setHost(cut_text(from.host, scratch));
  write_failure(from.failed, to);
  to.setStopped(from.stopped);
}

static actor_status read(schema::ActorStatus::Reader from) {
  return {.counters = detail::read(from.getCounters()),
          .host = read_text(from.getHost()),
          .failed = read_failure(from),
          .stopped = from.getStopped()};
}

void write(const lease_progress& from, schema::LeaseProgress::Builder to) {
  write(from.lease, to.initLease());
  write_numbers(from.done, to.initDone(static_cast<unsigned>(from.done.size())));
}

lease_progress read(schema::LeaseProgress::Reader from) {
  return {.lease = read(from.getLease()), .done = read_numbers<batch_id>(from.getDone())};
}

void write(const file_entry& from, schema::FileEntry::Builder to) {
  std::string scratch;
  to.setName(cut_text(from.name, scratch));
  to.setSizeBytes(from.size_bytes);
  to.setCrc32c(from.crc32c);
}

file_entry read(schema::FileEntry::Reader from) {
  return {.name = read_text(from.getName()),
          .size_bytes = from.getSizeBytes(),
          .crc32c = from.getCrc32c()};
}

void write(const value_checksum& from, schema::ValueChecksum::Builder to) {
  to.setVersion(from.version);
  to.setCrc32c(from.crc32c);
}

value_checksum read(schema::ValueChecksum::Reader from) {
  return {.version = from.getVersion(), .crc32c = from.getCrc32c()};
}

void write(const replica_status& from, schema::ReplicaStatus::Builder to) {
  std::string scratch;
  to.setShard(from.shard.value);
  write(from.status, to.initStatus());
  write_failure(from.failed, to);
  to.setUnreadable(from.unreadable);
  to.setRecovered(from.recovered);
  write(from.part, to.initPart());
  to.setCheckpointFailed(from.checkpoint_failed);
  to.setCheckpointFailure(cut_text(from.checkpoint_failure, scratch));
  write(from.applied, to.initApplied());
  write_list(from.clocks, to.initClocks(static_cast<unsigned>(from.clocks.size())));
  to.setVersion(from.version);
  write_list(from.checksums, to.initChecksums(static_cast<unsigned>(from.checksums.size())));
}

replica_status read(schema::ReplicaStatus::Reader from) {
  return {.shard = {from.getShard()},
          .status = read(from.getStatus()),
          .failed = read_failure(from),
          .unreadable = from.getUnreadable(),
          .recovered = from.getRecovered(),
          .part = read(from.getPart()),
          .checkpoint_failed = from.getCheckpointFailed(),
          .checkpoint_failure = read_text(from.getCheckpointFailure()),
          .applied = read(from.getApplied()),
          .clocks = read_list<clock_entry>(from.getClocks(), clocks_max, "clocks"),
          .version = from.getVersion(),
          .checksums = read_list<value_checksum>(from.getChecksums(), checksums_max, "checksums")};
}

// One overload for each alternative of the body: the compiler refuses a body without one.
static void put(const worker_status& body, schema::StatusMessage::Builder to) {
  write(body, to.initWorker());
}
static void put(const server_status& body, schema::StatusMessage::Builder to) {
  write(body, to.initServer());
}
static void put(const observer_status& body, schema::StatusMessage::Builder to) {
  write(body, to.initObserver());
}
static void put(const actor_status& body, schema::StatusMessage::Builder to) {
  write(body, to.initActor());
}

void write(const status_message& from, schema::StatusMessage::Builder to) {
  std::string scratch;
  write(from.from, to.initFrom());
  to.setJob(from.job);
  to.setSequence(from.sequence);
  to.setRssBytesMax(from.rss_bytes_max);
  if (!from.address.empty())
    to.setAddress(cut_text(from.address, scratch));
  std::visit([&](const auto& body) { put(body, to); }, from.body);
}

status_message read(schema::StatusMessage::Reader from) {
  status_message made{.from = read(from.getFrom()),
                      .job = from.getJob(),
                      .sequence = from.getSequence(),
                      .rss_bytes_max = from.getRssBytesMax(),
                      .body = {},
                      .address = read_text(from.getAddress())};
  switch (from.which()) {
  case schema::StatusMessage::WORKER: made.body = read(from.getWorker()); return made;
  case schema::StatusMessage::SERVER: made.body = read(from.getServer()); return made;
  case schema::StatusMessage::OBSERVER: made.body = read(from.getObserver()); return made;
  case schema::StatusMessage::ACTOR: made.body = read(from.getActor()); return made;
  }
  throw rejected{"a report of an unknown kind"};
}

} // namespace troupe::wire::detail
