// Converts the sets, clocks and counters of statuses and desired states to Cap'n Proto structs and
// back.
#include "serialization/detail/parts.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::wire::detail {

void write(const batch_set& from, schema::BatchSet::Builder to) {
  to.setFloor(from.floor().value);
  write_numbers(from.words(), to.initWords(static_cast<unsigned>(from.words().size())));
}

batch_set read(schema::BatchSet::Reader from) {
  const auto words = from.getWords();
  // This limit is far from the largest number, so the set's arithmetic cannot wrap around.
  if (from.getFloor() > batches_max || words.size() > (batches_max - from.getFloor() + 63) / 64)
    throw rejected{"a set with batches that no job has: from " + std::to_string(from.getFloor())};
  return {batch_id{from.getFloor()}, read_numbers<std::uint64_t>(words)};
}

void write(const histogram& from, schema::Histogram::Builder to) {
  write_numbers(from.counts(), to.initCounts(static_cast<unsigned>(from.counts().size())));
  to.setSum(from.sum());
  to.setMax(from.max());
}

histogram read(schema::Histogram::Reader from) {
  const auto counts = from.getCounts();
  check_count(counts.size(), histogram::buckets_max, "buckets in a histogram");
  return {read_numbers<std::uint64_t>(counts), from.getSum(), from.getMax()};
}

void write(const lease& from, schema::Lease::Builder to) {
  to.setId(from.id);
  to.setFirst(from.first.value);
  to.setCount(from.count);
  to.setStride(from.stride);
}

lease read(schema::Lease::Reader from) {
  constexpr std::uint32_t count_max = 1 << 16; // Receivers count and divide by these fields.
  if (from.getStride() == 0 || from.getCount() > count_max || from.getFirst() > batches_max)
    throw rejected{"a lease that no job has: " + std::to_string(from.getCount()) + " from "
                   + std::to_string(from.getFirst()) + " with stride "
                   + std::to_string(from.getStride())};
  return {.id = from.getId(),
          .first = {from.getFirst()},
          .count = from.getCount(),
          .stride = from.getStride()};
}

void write(const clock_entry& from, schema::ClockEntry::Builder to) {
  to.setWorker(from.worker.value);
  to.setIncarnation(from.incarnation.value);
  to.setClock(from.clock);
  to.setKnown(from.known);
}

clock_entry read(schema::ClockEntry::Reader from) {
  return {.worker = {from.getWorker()},
          .incarnation = {from.getIncarnation()},
          .clock = from.getClock(),
          .known = from.getKnown()};
}

namespace {

/// A count, and the functions of its schema.
template <class Counters, class Schema>
struct wire_count {
  std::uint64_t Counters::*count;
  void (Schema::Builder::*set)(std::uint64_t);
  std::uint64_t (Schema::Reader::*get)() const;
};

/// Returns whether the table has each count of counter_list once, and no other.
template <class Counters, class Schema, std::size_t size>
consteval bool has_each_once(const wire_count<Counters, Schema> (&table)[size]) {
  constexpr auto& counts = counter_list<Counters>::counts;
  return size == counts.size() && std::ranges::all_of(counts, [&](auto count) {
           return std::ranges::count(table, count, &wire_count<Counters, Schema>::count) == 1;
         });
}

using schema::WorkerCounters;
constexpr wire_count<worker_counters, WorkerCounters> worker_counts[] = {
  {&worker_counters::pushes_sent, &WorkerCounters::Builder::setPushesSent,
   &WorkerCounters::Reader::getPushesSent},
  {&worker_counters::pushes_acknowledged, &WorkerCounters::Builder::setPushesAcknowledged,
   &WorkerCounters::Reader::getPushesAcknowledged},
  {&worker_counters::pushes_refused, &WorkerCounters::Builder::setPushesRefused,
   &WorkerCounters::Reader::getPushesRefused},
  {&worker_counters::samples, &WorkerCounters::Builder::setSamples,
   &WorkerCounters::Reader::getSamples},
  {&worker_counters::batches_computed, &WorkerCounters::Builder::setBatchesComputed,
   &WorkerCounters::Reader::getBatchesComputed},
  {&worker_counters::samples_computed, &WorkerCounters::Builder::setSamplesComputed,
   &WorkerCounters::Reader::getSamplesComputed},
  {&worker_counters::bytes_sent, &WorkerCounters::Builder::setBytesSent,
   &WorkerCounters::Reader::getBytesSent},
  {&worker_counters::bytes_received, &WorkerCounters::Builder::setBytesReceived,
   &WorkerCounters::Reader::getBytesReceived},
  {&worker_counters::wait_us, &WorkerCounters::Builder::setWaitUs,
   &WorkerCounters::Reader::getWaitUs},
  {&worker_counters::window_wait_us, &WorkerCounters::Builder::setWindowWaitUs,
   &WorkerCounters::Reader::getWindowWaitUs},
  {&worker_counters::wire_bytes_sent, &WorkerCounters::Builder::setWireBytesSent,
   &WorkerCounters::Reader::getWireBytesSent},
  {&worker_counters::wire_bytes_received, &WorkerCounters::Builder::setWireBytesReceived,
   &WorkerCounters::Reader::getWireBytesReceived},
  {&worker_counters::loss_count, &WorkerCounters::Builder::setLossCount,
   &WorkerCounters::Reader::getLossCount},
  {&worker_counters::left_out, &WorkerCounters::Builder::setLeftOut,
   &WorkerCounters::Reader::getLeftOut},
  {&worker_counters::pushes_summed, &WorkerCounters::Builder::setPushesSummed,
   &WorkerCounters::Reader::getPushesSummed},
  {&worker_counters::sums, &WorkerCounters::Builder::setSums, &WorkerCounters::Reader::getSums},
  {&worker_counters::device_sums, &WorkerCounters::Builder::setDeviceSums,
   &WorkerCounters::Reader::getDeviceSums},
  {&worker_counters::channel_wait_us, &WorkerCounters::Builder::setChannelWaitUs,
   &WorkerCounters::Reader::getChannelWaitUs}};
static_assert(has_each_once(worker_counts));
static_assert(sizeof(worker_counters)
              == std::size(worker_counts) * sizeof(std::uint64_t) + sizeof(double) // loss_sum
                   + counter_list<worker_counters>::histograms.size() * sizeof(histogram)
                   + sizeof(std::vector<program_note>) + sizeof(std::vector<port_counters>));

using schema::ServerCounters;
constexpr wire_count<server_counters, ServerCounters> server_counts[] = {
  {&server_counters::applied, &ServerCounters::Builder::setApplied,
   &ServerCounters::Reader::getApplied},
  {&server_counters::duplicates, &ServerCounters::Builder::setDuplicates,
   &ServerCounters::Reader::getDuplicates},
  {&server_counters::refused, &ServerCounters::Builder::setRefused,
   &ServerCounters::Reader::getRefused},
  {&server_counters::pulls, &ServerCounters::Builder::setPulls, &ServerCounters::Reader::getPulls},
  {&server_counters::waiting_pulls, &ServerCounters::Builder::setWaitingPulls,
   &ServerCounters::Reader::getWaitingPulls},
  {&server_counters::bytes_sent, &ServerCounters::Builder::setBytesSent,
   &ServerCounters::Reader::getBytesSent},
  {&server_counters::bytes_received, &ServerCounters::Builder::setBytesReceived,
   &ServerCounters::Reader::getBytesReceived}};
static_assert(has_each_once(server_counts));
static_assert(sizeof(server_counters)
              == std::size(server_counts) * sizeof(std::uint64_t)
                   + counter_list<server_counters>::histograms.size() * sizeof(histogram)
                   + sizeof(std::vector<program_note>));

} // namespace

void write(const program_note& from, schema::ProgramNote::Builder to) {
  to.setName(from.name);
  to.setCount(from.count);
  to.setIsLine(from.is_line);
}

program_note read(schema::ProgramNote::Reader from) {
  return {read_text(from.getName(), program_note_bytes_max), from.getCount(), from.getIsLine()};
}

void write(const port_counters& from, schema::PortCounters::Builder to) {
  std::string scratch;
  to.setPort(cut_text(from.port, scratch, port_bytes_max));
  to.setParcels(from.parcels);
  to.setBytes(from.bytes);
  to.setLost(from.lost);
  to.setLongestWaitUs(from.longest_wait_us);
}

port_counters read(schema::PortCounters::Reader from) {
  return {.port = read_text(from.getPort(), port_bytes_max),
          .parcels = from.getParcels(),
          .bytes = from.getBytes(),
          .lost = from.getLost(),
          .longest_wait_us = from.getLongestWaitUs()};
}

void write(const worker_counters& from, schema::WorkerCounters::Builder to) {
  for (const auto& each : worker_counts)
    (to.*each.set)(from.*each.count);
  to.setLossSum(from.loss_sum);
  write(from.request_times, to.initRequestTimes());
  write_list(from.notes, to.initNotes(static_cast<unsigned>(from.notes.size())));
  write_list(from.ports, to.initPorts(static_cast<unsigned>(from.ports.size())));
}

worker_counters read(schema::WorkerCounters::Reader from) {
  worker_counters made;
  for (const auto& each : worker_counts)
    made.*each.count = (from.*each.get)();
  made.loss_sum = from.getLossSum();
  made.request_times = read(from.getRequestTimes());
  made.notes = read_list<program_note>(from.getNotes(), program_notes_max, "notes of a program");
  made.ports = read_list<port_counters>(from.getPorts(), ports_max, "ports");
  return made;
}

void write(const server_counters& from, schema::ServerCounters::Builder to) {
  for (const auto& each : server_counts)
    (to.*each.set)(from.*each.count);
  write(from.staleness_versions, to.initStalenessVersions());
  write(from.staleness_clocks, to.initStalenessClocks());
  write_list(from.notes, to.initNotes(static_cast<unsigned>(from.notes.size())));
}

server_counters read(schema::ServerCounters::Reader from) {
  server_counters made;
  for (const auto& each : server_counts)
    made.*each.count = (from.*each.get)();
  made.staleness_versions = read(from.getStalenessVersions());
  made.staleness_clocks = read(from.getStalenessClocks());
  made.notes = read_list<program_note>(from.getNotes(), program_notes_max, "notes of a program");
  return made;
}

void write(const actor_counters& from, schema::ActorCounters::Builder to) {
  write_list(from.ports, to.initPorts(static_cast<unsigned>(from.ports.size())));
  write_list(from.notes, to.initNotes(static_cast<unsigned>(from.notes.size())));
  if (from.requests != worker_counters{})
    write(from.requests, to.initRequests());
}

actor_counters read(schema::ActorCounters::Reader from) {
  return {.ports = read_list<port_counters>(from.getPorts(), ports_max, "ports"),
          .notes =
            read_list<program_note>(from.getNotes(), program_notes_max, "notes of a program"),
          .requests = from.hasRequests() ? read(from.getRequests()) : worker_counters{}};
}

} // namespace troupe::wire::detail
