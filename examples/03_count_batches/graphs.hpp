// The graphs that the program can count on: each has the same sums in the end.
#pragma once

#include "examples/03_count_batches/sums.hpp"
#include "troupe/troupe.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace count_batches {

/// The program's own options.
struct settings {
  std::uint64_t elements = 100'000;
  std::uint64_t samples = 10'000;
  bool sparse = false;
  std::string graph = "plain";
  std::string function = "none";
  std::string factors;    ///< File with the values of a frozen table; empty: there is none.
  bool thaw = false;      ///< The factors take steps too.
  std::string parcel_log; ///< Folder for the files of parcels; empty: there are none.
};

/// Returns the values of --graph.
std::vector<std::string> graph_names();

/// Returns the command line's options with those that the graph sets. Throws
/// std::invalid_argument if other options of the program do not fit the graph.
troupe::run_options options_of(const settings& chosen, troupe::run_options options);

/// Returns the stages of the graph, those of the command line included.
troupe::stage_list path_of(const std::string& graph, const troupe::run_options& options);

/// Returns the store of the graph: servers, or an own store.
troupe::any_store store_of(const settings& chosen, const troupe::run_options& options);

/// Returns a maker of trainers.
troupe::trainer_maker trainers_of(const settings& chosen, const schedule& all,
                                  const troupe::run_options& options);

} // namespace count_batches
