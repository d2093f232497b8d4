// Converts the sets, clocks and counters of statuses and desired states to Cap'n Proto structs and
// back.
#include "serialization/detail/parts.hpp"

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

void write(const worker_counters& from, schema::WorkerCounters::Builder to) {
  to.setPushesSent(from.pushes_sent);
  to.setPushesAcknowledged(from.pushes_acknowledged);
  to.setPushesRefused(from.pushes_refused);
  to.setWindowWaitUs(from.window_wait_us);
  to.setSamples(from.samples);
  to.setBatchesComputed(from.batches_computed);
  to.setSamplesComputed(from.samples_computed);
  to.setBytesSent(from.bytes_sent);
  to.setBytesReceived(from.bytes_received);
  to.setWaitUs(from.wait_us);
  to.setLossSum(from.loss_sum);
  to.setLossCount(from.loss_count);
  to.setWireBytesSent(from.wire_bytes_sent);
  to.setWireBytesReceived(from.wire_bytes_received);
  write(from.request_times, to.initRequestTimes());
  to.setLeftOut(from.left_out);
  to.setPushesSummed(from.pushes_summed);
  to.setSums(from.sums);
  to.setDeviceSums(from.device_sums);
}

worker_counters read(schema::WorkerCounters::Reader from) {
  return {.pushes_sent = from.getPushesSent(),
          .pushes_acknowledged = from.getPushesAcknowledged(),
          .pushes_refused = from.getPushesRefused(),
          .samples = from.getSamples(),
          .batches_computed = from.getBatchesComputed(),
          .samples_computed = from.getSamplesComputed(),
          .bytes_sent = from.getBytesSent(),
          .bytes_received = from.getBytesReceived(),
          .wait_us = from.getWaitUs(),
          .window_wait_us = from.getWindowWaitUs(),
          .wire_bytes_sent = from.getWireBytesSent(),
          .wire_bytes_received = from.getWireBytesReceived(),
          .loss_sum = from.getLossSum(),
          .loss_count = from.getLossCount(),
          .request_times = read(from.getRequestTimes()),
          .left_out = from.getLeftOut(),
          .pushes_summed = from.getPushesSummed(),
          .sums = from.getSums(),
          .device_sums = from.getDeviceSums()};
}

void write(const server_counters& from, schema::ServerCounters::Builder to) {
  to.setApplied(from.applied);
  to.setDuplicates(from.duplicates);
  to.setRefused(from.refused);
  to.setPulls(from.pulls);
  to.setWaitingPulls(from.waiting_pulls);
  to.setBytesSent(from.bytes_sent);
  to.setBytesReceived(from.bytes_received);
  write(from.staleness_versions, to.initStalenessVersions());
  write(from.staleness_clocks, to.initStalenessClocks());
}

server_counters read(schema::ServerCounters::Reader from) {
  return {.applied = from.getApplied(),
          .duplicates = from.getDuplicates(),
          .refused = from.getRefused(),
          .pulls = from.getPulls(),
          .waiting_pulls = from.getWaitingPulls(),
          .bytes_sent = from.getBytesSent(),
          .bytes_received = from.getBytesReceived(),
          .staleness_versions = read(from.getStalenessVersions()),
          .staleness_clocks = read(from.getStalenessClocks())};
}

} // namespace troupe::wire::detail
