// Converts jobs to Cap'n Proto structs and to files, and back.
#include "serialization/detail/parts.hpp"
#include "serialization/detail/segment_builder.hpp"

#include <capnp/serialize.h>

#include <bit>
#include <cstring>

namespace troupe::wire {

namespace detail {

static void write(const optimizer_spec& from, schema::Optimizer::Builder to) {
  to.setKind(static_cast<std::uint8_t>(from.kind));
  to.setLearningRate(from.learning_rate);
  to.setMomentum(from.momentum);
  to.setBeta2(from.beta2);
  to.setEpsilon(from.epsilon);
  to.setWeightDecay(from.weight_decay);
  to.setClipValue(from.clip_value);
  to.setClipNorm(from.clip_norm);
  to.setScaleByStaleness(from.full_rate_staleness != 0);
  if (from.full_rate_staleness != 0)
    to.setFullRateStaleness(from.full_rate_staleness);
  to.setL1(from.l1);
  to.setBeta(from.beta);
  if (from.kind != optimizer_kind::user)
    return;
  to.setFunction(from.function);
  write_numbers(from.parameters, to.initParameters(static_cast<unsigned>(from.parameters.size())));
  to.setFunctionState(from.function_state);
}

static optimizer_spec read(schema::Optimizer::Reader from) {
  check_count(from.getParameters().size(), function_parameters_max, "parameters of a function");
  return {.kind = read_enum(from.getKind(), optimizer_kind_max, "optimizer"),
          .learning_rate = from.getLearningRate(),
          .momentum = from.getMomentum(),
          .beta2 = from.getBeta2(),
          .epsilon = from.getEpsilon(),
          .weight_decay = from.getWeightDecay(),
          .clip_value = from.getClipValue(),
          .clip_norm = from.getClipNorm(),
          .full_rate_staleness = from.getScaleByStaleness() ? from.getFullRateStaleness() : 0.0f,
          .l1 = from.getL1(),
          .beta = from.getBeta(),
          .function = read_text(from.getFunction(), name_length_max),
          .parameters = read_numbers<float>(from.getParameters()),
          .function_state = from.getFunctionState()};
}

static void write(const consistency& from, schema::Consistency::Builder to) {
  to.setMode(static_cast<std::uint8_t>(from.mode));
  to.setStalenessClocks(from.staleness_clocks);
}

static consistency read(schema::Consistency::Reader from) {
  return {read_enum(from.getMode(), consistency_mode_max, "consistency"),
          from.getStalenessClocks()};
}

static void write(const initializer& from, schema::Initializer::Builder to) {
  to.setKind(static_cast<std::uint8_t>(from.kind));
  to.setScale(from.scale);
  to.setZeros(from.zeros);
}

static initializer read(schema::Initializer::Reader from) {
  return {read_enum(from.getKind(), initializer_kind::normal, "initializer"), from.getScale(),
          from.getZeros()};
}

void write(const table_spec& from, schema::Table::Builder to) {
  to.setName(from.name);
  write_numbers(from.shape, to.initShape(static_cast<unsigned>(from.shape.size())));
  write(from.sync, to.initSync());
  write(from.optimizer, to.initOptimizer());
  write(from.init, to.initInit());
  to.setKind(static_cast<std::uint8_t>(from.kind));
  to.setWidth(from.width);
  to.setFrozen(from.frozen);
  to.setValuesChecksum(from.values_checksum);
}

table_spec read(schema::Table::Reader from) {
  check_count(from.getShape().size(), rank_max, "extents in a shape");
  return {.name = read_text(from.getName(), name_length_max),
          .shape = read_numbers<std::uint64_t>(from.getShape()),
          .sync = read(from.getSync()),
          .optimizer = read(from.getOptimizer()),
          .init = read(from.getInit()),
          .kind = read_enum(from.getKind(), table_kind::sparse, "kind of table"),
          .width = from.getWidth(),
          .frozen = from.getFrozen(),
          .values_checksum = from.getValuesChecksum()};
}

void write(const own_option& from, schema::OwnOption::Builder to) {
  to.setName(from.name);
  to.setValue(from.value);
}

own_option read(schema::OwnOption::Reader from) {
  return {.name = read_text(from.getName(), own_option_bytes_max),
          .value = read_text(from.getValue(), own_option_bytes_max)};
}

void write(const job_spec& from, schema::Job::Builder to) {
  to.setName(from.name);
  to.setSeed(from.seed);
  to.setPartitions(from.partitions);
  to.setServers(from.servers);
  to.setReplicas(from.replicas);
  to.setShards(from.shards);
  to.setWorkers(from.workers);
  to.setBackupWorkers(from.backup_workers);
  to.setDurability(static_cast<std::uint8_t>(from.durability));
  to.setOwnStore(from.own_store);
  to.setSamples(from.samples);
  to.setBatchSamples(from.batch_samples);
  to.setEpochs(from.epochs);
  write_list(from.tables, to.initTables(static_cast<unsigned>(from.tables.size())));
  to.setFilesChecksum(from.files_checksum);
  write_list(from.own_options, to.initOwnOptions(static_cast<unsigned>(from.own_options.size())));
  to.setActors(from.actors);
  to.setGossip(from.gossip);
}

job_spec read(schema::Job::Reader from) {
  job_spec job{.name = read_text(from.getName(), name_length_max),
               .seed = from.getSeed(),
               .partitions = from.getPartitions(),
               .servers = from.getServers(),
               .replicas = std::max(from.getReplicas(), 1u),
               .shards = from.getShards(),
               .workers = from.getWorkers(),
               .backup_workers = from.getBackupWorkers(),
               .durability = read_enum(from.getDurability(), durability_mode::log, "durability"),
               .own_store = from.getOwnStore(),
               .gossip = from.getGossip(),
               .samples = from.getSamples(),
               .batch_samples = from.getBatchSamples(),
               .epochs = from.getEpochs(),
               .tables = read_list<table_spec>(from.getTables(), tables_max, "tables"),
               .files_checksum = from.getFilesChecksum(),
               .own_options =
                 read_list<own_option>(from.getOwnOptions(), own_options_max, "own options"),
               .actors = from.getActors()};
  if (auto valid = validate(job); !valid)
    throw rejected{"a job that cannot be: " + valid.error().text};
  return job;
}

} // namespace detail

namespace {

constexpr std::uint32_t job_magic = 0x4a505254; // "TRPJ"
/// Prefix of a stream of one segment: the number of segments - 1, and the segment's words.
constexpr std::size_t job_prefix_bytes = 8;

result<job_spec> read_stored(kj::ArrayPtr<const capnp::word> words) {
  const kj::ArrayPtr<const capnp::word> segments[] = {words};
  capnp::SegmentArrayMessageReader reader{kj::arrayPtr(segments, 1),
                                          detail::reader_options(words.size())};
  const auto root = reader.getRoot<schema::StoredJob>();
  if (root.getMagic() != job_magic)
    return {errc::malformed, "not a job's file"};
  if (root.getVersion() == 0 || root.getVersion() > job_format_version)
    return {errc::version_mismatch, "the job's file has format " + std::to_string(root.getVersion())
                                      + ", this program reads 1 to "
                                      + std::to_string(job_format_version)};
  return detail::read(root.getJob());
}

} // namespace

std::vector<std::byte> encode_job(const job_spec& job) {
  detail::segment_builder builder{job_prefix_bytes, 64 + 40 * job.tables.size()};
  auto root = builder.initRoot<schema::StoredJob>();
  root.setVersion(job_format_version);
  root.setMagic(job_magic);
  detail::write(job, root.initJob());
  auto bytes = builder.finish<schema::StoredJob>();
  const std::uint32_t prefix[] = {
    0, static_cast<std::uint32_t>((bytes.size() - job_prefix_bytes) / sizeof(capnp::word))};
  static_assert(sizeof(prefix) == job_prefix_bytes && std::endian::native == std::endian::little);
  std::memcpy(bytes.data(), prefix, sizeof(prefix));
  return bytes;
}

result<job_spec> decode_job(std::span<const std::byte> bytes) {
  std::uint32_t prefix[2];
  if (bytes.size() < sizeof(prefix) || bytes.size() > head_bytes_max)
    return {errc::malformed, "not a job's file: it has " + std::to_string(bytes.size()) + " bytes"};
  std::memcpy(prefix, bytes.data(), sizeof(prefix));
  const auto body = bytes.subspan(sizeof(prefix));
  if (prefix[0] != 0 || std::uint64_t{prefix[1]} * sizeof(capnp::word) != body.size())
    return {errc::malformed, "not a job's file: its length is wrong"};
  // Cap'n Proto reads aligned words only.
  std::vector<std::uint64_t> words(prefix[1]);
  if (!words.empty())
    std::memcpy(words.data(), body.data(), body.size());
  return detail::guarded<job_spec>([&] {
    return read_stored({reinterpret_cast<const capnp::word*>(words.data()), words.size()});
  });
}

} // namespace troupe::wire
