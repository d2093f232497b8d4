// Counts batches in sums (sums.hpp), which prove that each batch was applied exactly once. If a
// batch is lost or counted twice, a sum is right by chance at most. The sums of 64 neighbours are
// all right with probability 2^-64.
//
// bsp subtracts the mean of the n gradients of a clock, so there each is multiplied by n first.
// All numbers are integers up to 2^24: exact in float32, in any order.
//
// With --factors the terms of element i are multiplied by the value i of a table that is frozen and
// begins with the values of a file. Where it has other values for one batch, a sum is wrong.
#include "examples/03_count_batches/functions.hpp"
#include "examples/03_count_batches/graphs.hpp"
#include "examples/03_count_batches/parcels.hpp"
#include "examples/03_count_batches/stages.hpp"
#include "examples/03_count_batches/trainers.hpp"
#include "troupe/troupe.hpp"

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using count_batches::schedule;

std::uint64_t divided_up(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

void check_exact(const schedule& all) {
  const std::uint64_t rest = all.batches % all.slots;
  if (!std::has_single_bit(all.slots) || (rest > 0 && !std::has_single_bit(rest)))
    throw std::invalid_argument{
      "a mean is exact only of 1, 2, 4, 8, ... batches, but " + std::to_string(all.batches)
      + " in an epoch are shared by " + std::to_string(all.slots)
      + " workers: use --workers 4 and as many --samples as fill all clocks"};
  if (2 * all.epochs * all.batches > 1u << 24)
    throw std::invalid_argument{"floats count up to 2^24, so only 2^23 batches are exact, not "
                                + std::to_string(all.epochs * all.batches)
                                + ": use fewer --samples or --epochs, or a larger --batch"};
}

} // namespace

int main(int argc, char** argv) {
  count_batches::settings chosen;
  troupe::program program{"count_batches", "Counts batches on a cluster that outlives kills."};
  program.option("--elements", chosen.elements, "Elements of the table", count_batches::bits,
                 100'000'000);
  program.option("--samples", chosen.samples, "Samples of an epoch; --batch of them make a batch",
                 1, 1'000'000'000);
  program.flag("--sparse", chosen.sparse,
               "Count in rows of a sparse table; a batch touches half of them");
  program.option("--graph", chosen.graph,
                 "Where batches are counted, and what is before it; those behind codec have a "
                 "mistake",
                 count_batches::graph_names());
  program.option("--function", chosen.function,
                 "A server function that adds gradients; those behind add have a mistake, which "
                 "ends the job",
                 count_batches::function_names());
  program.option("--factors", chosen.factors,
                 "File of a frozen table `factors`, one for each element");
  program.flag("--thaw", chosen.thaw, "Leave the factors unfrozen; their gradient is zero");
  program.option("--parcel-log", chosen.parcel_log,
                 "--graph channel: folder for a file of each port, with a line for each parcel");
  count_batches::add_functions(program);

  return program.run(argc, argv, [&](const troupe::run_options& given) {
    const auto options = count_batches::options_of(chosen, given);
    const schedule all{options.epochs, divided_up(chosen.samples, options.batch_samples),
                       options.sync.traits().clock_updates ? options.workers.count : 1u,
                       chosen.sparse ? chosen.elements / count_batches::row_width : 0,
                       count_batches::has_halves(chosen.graph) ? 2.0f : 1.0f};
    check_exact(all);
    troupe::graph g;
    auto sums = g.add("sums", count_batches::store_of(chosen, options));
    auto counters =
      g.add("counters",
            options.workers_of(chosen.samples, count_batches::trainers_of(chosen, all, options)));
    counters.into(count_batches::path_of(chosen.graph, options), sums);
    if (chosen.graph == "channel")
      count_batches::add_parcels(g, counters, chosen.parcel_log);
    g.add("check", troupe::evaluate{[=] { return count_batches::make_evaluator(all); }}).into(sums);
    return g;
  });
}
