// Has the table of fields, in the order of --help.
#include "actors/graph/options/fields.hpp"

#include "actors/graph/options/field_kinds.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <stdexcept>

namespace troupe {

namespace {

using rows = std::vector<field>;

std::vector<role> to(auto... readers) { return {readers...}; }

rows nodes() {
  return {
    field{"--workers", number(at(&workers::count), 1, 1024), "Workers of the job", "workers::count",
          to(role::worker)}
      .but({.is_identity = true}), // They are the slots of a bsp clock.
    {"--servers", number(at(&servers::count), 1, 256), "Servers of the job", "servers::count"},
    {"--replicas", number(at(&servers::replicas), 1, 16),
     "Servers that hold each parameter; all but one of them may die at a time without a loss",
     "servers::replicas"},
    {"--shards", number(at(&servers::shards), 0, 4096),
     "Parts of the parameters that are placed on servers; more than servers if servers are added "
     "later; 0: one for each server",
     "servers::shards"},
  };
}

/// Returns the modes, and the words of stores with their meanings.
std::string sync_choices() {
  auto text = mode_choices();
  for (const auto* const each : all_store_rules())
    if (!each->sync_word.empty())
      text += fmt::format("; {}: {}", each->sync_word, each->help);
  return text;
}

rows steps() {
  using spec = optimizer_spec;
  return {
    field{"--sync", sync_kind(), "How far workers may drift apart: " + sync_choices(), "",
          to(role::coordinator)}
      .but({.is_identity = true}), // Whether it is bsp.
    field{"--optimizer", held_by(holder::steps, text(at(&spec::kind), parse_optimizer)),
          std::string{"The servers' step: "} + optimizer_choices}
      .but({.is_identity = true}),
    {"--lr", held_by(holder::steps, positive(at(&spec::learning_rate))), "Learning rate"},
    {"--momentum", number(at(&spec::momentum), 0, 0.999999f),
     "Momentum, or beta1 of adam and adamw"},
    {"--beta2", number(at(&spec::beta2), 0, 0.999999f),
     "Decay of adam's and adamw's second moment"},
    {"--epsilon", positive(at(&spec::epsilon)), "Added to the divisor of adagrad, adam and adamw"},
    {"--weight-decay", not_negative(at(&spec::weight_decay)),
     "L2 regularisation; adamw: decay of the weights, apart from the gradient"},
    {"--l1", not_negative(at(&spec::l1)), "ftrl: L1 regularisation, makes weights 0"},
    {"--ftrl-beta", positive(at(&spec::beta)), "ftrl: larger is shorter first steps"},
    {"--clip-norm", held_by(holder::steps, not_negative(at(&spec::clip_norm))),
     "Largest gradient norm; 0: off"},
    {"--clip-value", not_negative(at(&spec::clip_value)), "Largest gradient element; 0: off"},
    field{"--staleness-lr",
          held_by(holder::stale_steps, not_negative(at(&spec::full_rate_staleness))),
          "asp, ssp: the staleness up to which an update has the full --lr; above it, the rate is "
          "--lr times this / staleness; 0: off"}
      .but({.shown =
              [](const run_options& x) {
                const auto own = x.optimizer.full_rate_staleness;
                return fmt::format("{}; with ftrl 0", own > 0 ? own : full_rate_staleness_default);
              }}),
  };
}

rows work() {
  return {
    field{"--batch", number(at(&run_options::batch_samples), 1, 1u << 20), "Samples of one batch"}
      .but({.is_identity = true}),
    {"--epochs", number(at(&run_options::epochs), 1, 1'000'000),
     "Epochs: passes over the training data"},
    field{"--seed", whole(at(&run_options::seed)),
          "Seed of initial values, of the order of samples, and of the times of --simulate"}
      .but({.is_identity = true}),
    field{"--partitions", number(at(&run_options::partitions), 1, 4096),
          "Units of placement; a power of two"}
      .but({.is_identity = true}),
  };
}

rows traffic() {
  return {
    {"--push-memory",
     held_by(holder::push_limit, number(at(&workers::push_memory_mib), 1, 1u << 20)),
     "asp, ssp: MiB of a process's pushes that are not answered yet; later pushes wait",
     "workers::push_memory_mib", started_roles()},
    {"--apply-batch", number(at(&servers::apply_batch), 1, 1024),
     "asp, ssp: waiting pushes that a server applies in one pass over memory",
     "servers::apply_batch", to(role::server)},
    {"--pull-ahead", held_by(holder::workers_alone, number(at(&workers::ahead), 0, 2)),
     "asp, hogwild: batches whose values a worker pulls while it computes another",
     "workers::ahead", to(role::worker)},
    {"--workers-per-process",
     held_by(holder::workers_alone, number(at(&workers::per_process), 1, workers_per_process_max)),
     "Workers of a process, which adds up their pushes and pulls once for all",
     "workers::per_process", to(role::worker)},
    {"--reduce-wait", number(at(&reduce::wait), 0, 5000),
     "With --workers-per-process: milliseconds that a sum waits for more workers; a later push is "
     "in the next sum",
     "reduce::wait"},
    {"--delta-pulls", held_by(holder::workers_alone, flag(at(&workers::delta_pulls), true)),
     "Pull only the blocks of dense tables that changed since the last pull; costs each worker one "
     "more copy of the values",
     "", to(role::worker)},
    {"--reads",
     text(at(&servers::reads), parse_read_target),
     "asp and bsp with --replicas: the servers that answer pulls; head: the first of each chain, "
     "in one request with a push; any: all replicas in turn, which relieves heads",
     "",
     {role::worker, role::actor}},
    {"--verify-replicas", number(at(&servers::verify_replicas), 0, 1'000'000'000),
     "With --replicas: compare the values of replicas each N versions, and end the job if they "
     "differ; 0: never. Finds server functions that read more than their arguments",
     "servers::verify_replicas", to(role::server)},
    {"--micro-batches", number(at(&micro_batching::count), 1, 1000),
     "Pipelines: micro-batches of a batch, which the parts of a line compute beside each other",
     "micro_batching::count"},
    {"--pipeline-order",
     text(at(&micro_batching::schedule, &micro_schedule::order), parse_micro_order),
     "Pipelines: fill-drain: all micro-batches forward, then all backward; 1f1b: backward as soon "
     "as it can, which bounds how many of them are in memory",
     "micro_schedule::order"},
    {"--pipeline-ahead", number(at(&micro_batching::schedule, &micro_schedule::ahead), 0, 1000),
     "Pipelines, 1f1b: micro-batches that a part computes ahead for each link below it, so that "
     "slow links are in use while parts compute; 0 needs the least memory",
     "micro_schedule::ahead"},
    {"--compress", pushes_kind(),
     "Send gradients of dense tables as fp16, bf16, int8 (a scale for each 256), onebit, "
     "topk:FRACTION or randomk:FRACTION (of a block's elements); TABLE=... for one table, where "
     "f32 leaves it as it is (repeatable). The residue of onebit, topk and randomk is added to the "
     "next gradient",
     "compress::pushes"},
    {"--compress-pulls", pulls_kind(),
     "Have servers send values of dense tables as fp16, bf16 or int8; they keep them as f32",
     "compress::pulls"},
  };
}

rows ways_to_run() {
  return {
    {"--processes", flag(at(&run_options::asked_mode), run_mode::processes),
     "Every role is a process (the default)", "", to(role::coordinator)},
    field{"--threads", flag(at(&run_options::asked_mode), run_mode::threads),
          "All roles are actors of this one process", "", to(role::coordinator)}
      .but({.rivals = {"--processes"}}),
    field{"--simulate", flag(at(&run_options::asked_mode), run_mode::simulation),
          "All roles in one thread and virtual time: steps and messages take times drawn from "
          "--seed, and the run is the same each time",
          "", to(role::coordinator)}
      .but({.rivals = {"--processes", "--threads"}}),
  };
}

rows hosts() {
  return {
    {"--listen", text(at(&run_options::listen), parse_endpoint),
     "ADDRESS:PORT where other hosts join (default: loopback only)"},
    {"--join", text(at(&run_options::join), parse_endpoint),
     "ADDRESS:PORT of a job on another host; needs --here, the same data, and otherwise the same "
     "options as there; where --sync, --lr and the like differ, those there count"},
    {"--ports",
     text(at(&run_options::ports), parse_port_range),
     "FIRST-LAST: ports at which the processes of this host listen, for a firewall (default: any). "
     "The port of --listen is one more",
     "",
     {role::server, role::worker, role::actor}},
    {"--here", here_kind(),
     "Servers and workers that run on this host, by role or node, such as worker:2,server:1 or "
     "learners:2,model:1 (default: all)",
     "", to(role::worker)},
    {"--coordinator-store", text(at(&run_options::etcd), storage::parse_etcd_url, url_of),
     "etcd://HOST:PORT[,HOST:PORT...][/JOB]: the coordinator's state is kept there under the job's "
     "name, and its process leads by a lease (default: beside the checkpoints)",
     "", to(role::coordinator)},
    {"--standbys", number(at(&run_options::standbys), 0, 8),
     "With --coordinator-store: coordinator processes that wait to take over"},
    {"--tls", path(at(&run_options::tls_directory)),
     "Directory of certificates (troupe certs --help): links between hosts are encrypted, and each "
     "end proves its role",
     "", started_roles()},
    {"--allow-plaintext-on-network", flag(at(&run_options::plaintext_on_network), true),
     "Let --listen and --join do without --tls: anyone on the network can then read and change the "
     "job"},
  };
}

rows shows() {
  return {
    {"--print-graph", flag(at(&run_options::print_graph), true),
     "Print the program's graph and what it promises; run nothing"},
    field{"--dot", flag(at(&run_options::dot), true), "Print the graph for graphviz; run nothing"}
      .but({.rivals = {"--print-graph"}}),
    {"--dry-run", flag(at(&run_options::dry_run), true),
     "Check options, files and addresses and print the graph; run nothing"},
  };
}

rows slow_workers() {
  return {
    {"--backup-workers", held_by(holder::workers_alone, number(at(&workers::backups), 0, 1024)),
     "bsp: extra workers, which compute the slowest workers' batches again; the first copy counts",
     "workers::backups", to(role::worker)},
    field{"--stragglers", measure_kind(),
          "The strongest measure against a worker much slower than others: off, warn, rebalance "
          "(less work), demote (its updates are not waited for), evict (for a while)",
          "", to(role::coordinator)}
      .but({.shown =
              [](const run_options&) {
                return std::string{"evict; with --threads demote, with hogwild warn"};
              }}),
  };
}

rows checkpoints() {
  return {
    {"--checkpoint", path(at(&run_options::checkpoint_directory)),
     "Directory of checkpoints (default: in the run directory)"},
    {"--checkpoint-every", period_kind(),
     "Time (2s, 500ms) or steps (200clocks) between checkpoints; never: only at the start and the "
     "end",
     "checkpoint_options::interval", to(role::coordinator)},
    {"--checkpoint-keep",
     held_by(holder::checkpoints,
             number(at(&servers::checkpoints, &checkpoint_options::keep), 1, 1000)),
     "Checkpoints to keep", "checkpoint_options::keep", to(role::coordinator, role::server)},
    {"--checkpoint-scrub", scrub_kind(),
     "Time between two checkpoints that are read again, one after the other, so that a damaged one "
     "is known before it is needed; or off",
     "servers::scrub_interval", to(role::coordinator)},
    {"--durability", text(at(&servers::durability), parse_durability),
     "memory: an acknowledged push survives the end of all but one of the servers that hold it; "
     "log: of all of them, it is also in a write-ahead log of each beside the checkpoints"},
    {"--resume", flag(at(&run_options::resume), true),
     "Continue from the newest good checkpoint of --run-dir or --checkpoint"},
  };
}

rows results() {
  return {
    {"--report", path(at(&run_options::report_file)), "Write figures of the run to this JSON file"},
    {"--events", path(at(&run_options::events_file)),
     "Append the events of the run to this file, a JSON object a line (default: events.jsonl in "
     "the run directory)"},
    {"--export", path(at(&run_options::export_file)),
     "Write the final parameters (.npz, .safetensors, or .npy of one tensor)"},
    {"--import", path(at(&run_options::import_file)),
     "Start from these parameters (.npz, .safetensors)"},
    // The launcher appends its own to the command line of its processes.
    field{"--run-dir", path(at(&run_options::run_directory)),
          "Directory of this run's logs (default: runs/NAME-TIME-PID)"}
      .but({.last_wins = true}),
    {"--log-level", text(at(&run_options::log_level), parse_log_level),
     "Least level of a line in the logs: trace, debug, info, warn, error, or off: only the reason "
     "for which a process ends"},
  };
}

rows faults_on_purpose() {
  return {
    {"--slow", slow_kind(),
     "WORKER:MS: a straggler, that much slower in each step (repeatable). WORKER: its index, or "
     "the name of its node and the index, such as learners:0:16",
     "", to(role::worker)},
    {"--kill", kills_kind(),
     "NAME:INDEX@SECONDS: SIGKILL to a process that many seconds into training (repeatable). NAME: "
     "a role (worker, server, coordinator) or a node of the graph"},
    {"--no-key-cache", flag(at(&run_options::key_cache), false),
     "Send the keys of sparse rows with each request, also those that the server was sent before",
     "", started_roles()},
    {"--straggler-time-scale", number(at(&workers::straggler_time_scale), 1, 20),
     "Divide the times of the rules for stragglers by this", "workers::straggler_time_scale",
     to(role::coordinator)},
  };
}

rows recording() {
  return {
    {"--record", path(at(&run_options::record_directory)),
     "Write down in this directory in which order each shard applies which pushes, and which "
     "values they were computed from: 64 bytes a push and replica",
     "", to(role::server, role::worker)},
    field{"--replay", path(at(&run_options::replay_directory)),
          "Compute a recorded run again, in this process; needs the same data and model, the rest "
          "is in the record"}
      .but({.rivals = {"--record"}}),
    field{"--until",
          text(
            at(&run_options::replay_seconds), parse_seconds,
            [](double x) { return fmt::to_string(x); }, "FLOAT"),
          "With --replay: only the steps of the first SECONDS"}
      .but({.needed = "--replay"}),
    field{"--compare", path(at(&run_options::compare_file)),
          "With --replay: parameters that the run exported, or its directory of checkpoints; exit "
          "status 1 where the replayed ones differ in a byte"}
      .but({.needed = "--replay"}),
  };
}

/// Returns the fields that only a program sets.
rows of_programs() {
  const auto crashes = [](auto node) {
    return number(at(node, &supervision::crashes_max), 1, 1000);
  };
  const auto window = [](auto node) {
    return number(at(node, &supervision::window), 1, 1'000'000);
  };
  return {
    {"", crashes(&servers::on_death), "", "supervision::crashes_max"},
    {"", crashes(&workers::on_death), "", "supervision::crashes_max"},
    {"", window(&servers::on_death), "", "supervision::window"},
    {"", window(&workers::on_death), "", "supervision::window"},
  };
}

rows joined(std::initializer_list<rows> parts) {
  rows all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace

const field_table& all_fields() {
  static const field_table table{
    {"Training", joined({nodes(), steps(), work(), traffic()})},
    {"Cluster", joined({ways_to_run(), hosts(), shows(), slow_workers()})},
    {"Files", joined({checkpoints(), results()})},
    {"Fault injection", faults_on_purpose()},
    {"Recording", recording()},
    {"", of_programs()},
  };
  return table;
}

namespace {

/// Returns the fields that members of a role need and have no graph to take from.
rows read_by(role reader, const field_table& table) {
  rows read;
  std::ranges::copy_if(rows_of(table), std::back_inserter(read), [&](const field& row) {
    return std::ranges::find(row.readers, reader) != row.readers.end();
  });
  return read;
}

} // namespace

run_options carried_to(role reader, const run_options& from, const field_table& table) {
  run_options made;
  if (auto taken = take_texts(reader, texts_for(reader, from, table), made, table); !taken)
    throw std::logic_error{taken.error().text};
  return made;
}

field_texts texts_for(role reader, const run_options& from, const field_table& table) {
  field_texts texts;
  for (const auto& row : read_by(reader, table))
    texts[row.option] = row.kind.print(from);
  return texts;
}

/// Takes what field_kind::print returned. An empty text means a value that is absent.
static result<void> take_text(const field& row, const std::string& text, run_options& into) {
  if (!row.kind.repeats)
    return text.empty() ? result<void>{} : row.kind.take(text, into);
  for (const auto word : text | std::views::split(',')) {
    if (auto taken = row.kind.take({word.begin(), word.end()}, into); !taken)
      return taken;
  }
  return {};
}

result<void> take_texts(role reader, const field_texts& texts, run_options& into,
                        const field_table& table) {
  const auto read = read_by(reader, table);
  for (const auto& row : read) {
    const auto found = texts.find(row.option);
    if (found == texts.end())
      return {errc::malformed, "there is no " + row.option};
    if (auto taken = take_text(row, found->second, into); !taken)
      return {errc::malformed, row.option + ": " + taken.error().text};
  }
  if (texts.size() != read.size())
    return {errc::malformed, "there are fields that are unknown"};
  return {};
}

} // namespace troupe
