#include "examples/03_count_batches/graphs.hpp"

#include "examples/03_count_batches/keeper.hpp"
#include "examples/03_count_batches/parcels.hpp"
#include "examples/03_count_batches/raw_stages.hpp"
#include "examples/03_count_batches/stages.hpp"
#include "examples/03_count_batches/trainers.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

namespace count_batches {

using namespace std::chrono_literals;

namespace {

constexpr float largest_fp16 = 65504;

bool has_bad_keeper(const std::string& graph) { return graph.starts_with("bad-"); }

bool has_keeper(const std::string& graph) { return graph == "own-store" || has_bad_keeper(graph); }

bool adds_up(const std::string& graph) { return graph == "reducer" || graph == "device-reducer"; }

/// A sum of gradients is a power of two, the slots of a step, times a number below 2^11, the sum of
/// 1 or 2 for each worker of a process. So it is exact in fp16 if it is not too large.
void check_fp16(const troupe::run_options& options) {
  const auto slots = options.sync.traits().clock_updates ? options.workers.count : 1u;
  if (2.0f * static_cast<float>(slots) * static_cast<float>(options.workers.per_process)
      > largest_fp16)
    throw std::invalid_argument{"--graph codec: fp16 has no numbers above 65504, and a sum of this "
                                "job may be larger: use fewer --workers or --workers-per-process"};
}

} // namespace

std::vector<std::string> graph_names() {
  std::vector<std::string> all{"plain",   "stage",          "raw",   "faults", "own-store",
                               "reducer", "device-reducer", "codec", "channel"};
  std::ranges::move(mistakes(), std::back_inserter(all));
  std::ranges::move(raw_mistakes(), std::back_inserter(all));
  all.insert(all.end(), {"bad-apply", "bad-save", "bad-load"});
  return all;
}

troupe::run_options options_of(const settings& chosen, troupe::run_options options) {
  const auto& graph = chosen.graph;
  const auto refuse_if = [&](bool is_so, const std::string& what) {
    if (is_so)
      throw std::invalid_argument{"--graph " + graph + ": " + what};
  };
  refuse_if(has_keeper(graph) && chosen.sparse,
            "its keeper has the sums in one array: leave --sparse out");
  refuse_if(has_keeper(graph) && chosen.function != "none",
            "its keeper adds gradients, not a server function: leave --function out");
  refuse_if((has_keeper(graph) || graph == "device-reducer") && !chosen.factors.empty(),
            "it has the table of the sums only: leave --factors out");
  refuse_if(graph == "device-reducer" && chosen.sparse,
            "rows of a sparse table stay on no device: leave --sparse out");
  refuse_if(graph != "channel" && !chosen.parcel_log.empty(),
            "it has no parcels: leave --parcel-log out");
  const auto& mode = options.sync.traits();
  refuse_if(graph == "device-reducer" && (mode.pulls_wait() || mode.one_memory),
            "it is for --sync asp");
  if (adds_up(graph)) {
    auto& count = options.workers.per_process;
    if (!options.given.contains("--workers-per-process"))
      count = 2;
    refuse_if(count < 2, "a process needs 2 workers or more, and --workers-per-process is 1");
  }
  if (graph == "codec") {
    options.codec.pushes = {{"", {.how = troupe::encoding::fp16}}};
    check_fp16(options);
  }
  return options;
}

troupe::stage_list path_of(const std::string& graph, const troupe::run_options& options) {
  troupe::stage_list path;
  if (graph == "faults")
    path.emplace_back(troupe::faults{.lost = 0.05, .repeated = 0.05, .delay = 2ms});
  else if (auto raw = raw_stages_of(graph); !raw.empty())
    path = std::move(raw);
  else
    path = stages_of(graph);
  std::ranges::move(options.stages(), std::back_inserter(path));
  return path;
}

troupe::any_store store_of(const settings& chosen, const troupe::run_options& options) {
  troupe::table_spec counts{.name = "counts", .shape = {chosen.elements}};
  if (has_bad_keeper(chosen.graph))
    return troupe::own_store{
      .tables = {counts},
      .make = [n = chosen.elements, graph = chosen.graph] { return make_bad_keeper(n, graph); },
      .checkpoints = options.servers.checkpoints};
  if (has_keeper(chosen.graph))
    return troupe::own_store{.tables = {counts},
                             .takes_sums = true,
                             .make = [n = chosen.elements] { return make_keeper(n); },
                             .checkpoints = options.servers.checkpoints};
  if (chosen.sparse) {
    counts.shape.clear();
    counts.kind = troupe::table_kind::sparse;
    counts.width = row_width;
  }
  std::vector tables{counts};
  if (!chosen.factors.empty())
    tables.push_back({.name = "factors",
                      .shape = {chosen.elements},
                      .frozen = !chosen.thaw,
                      .values = troupe::from_file(chosen.factors)});
  auto store = options.store(std::move(tables));
  store.tables().front().optimizer = {.learning_rate = 1.0f}; // Each gradient is added as it is.
  if (chosen.function != "none")
    store.tables().front().optimizer = {
      .kind = troupe::optimizer_kind::user, .learning_rate = 1.0f, .function = chosen.function};
  return store;
}

troupe::trainer_maker trainers_of(const settings& chosen, const schedule& all,
                                  const troupe::run_options& options) {
  if (chosen.graph == "channel")
    return [all, parcel_log = chosen.parcel_log] { return make_parcel_trainer(all, parcel_log); };
  if (chosen.graph == "device-reducer")
    return device_trainers(all, options.workers.per_process);
  return [all] { return make_trainer(all); };
}

} // namespace count_batches
