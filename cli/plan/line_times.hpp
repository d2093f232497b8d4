// Predicts how long a batch takes in a line, by running the flows of its parts in virtual time.
#pragma once

#include "actors/protocol/pipeline/batch_cut.hpp"
#include "actors/protocol/pipeline/micro_order.hpp"
#include "base/error.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::planning {

/// Times of a line for a whole batch. A micro-batch takes its share of them: samples / batch.
struct line_costs {
  struct part {
    double forward_seconds = 0;
    double backward_seconds = 0;
  };
  std::vector<part> parts; ///< At least one.
  /// Times in which the link behind each part but the last carries the activations of a batch.
  /// Gradients take as long in the other direction. 0: none.
  std::vector<double> link_seconds;
};

/// What a batch took.
struct line_times {
  struct part {
    double busy_seconds = 0;
    std::uint32_t kept_most = 0; ///< Inputs from the begin of their forward to the end of backward.
    std::uint32_t held_most = 0; ///< Kept inputs, and those that wait for their forward.
    std::uint64_t samples_most = 0; ///< Samples of the held inputs.
  };
  double seconds = 0;
  std::vector<part> parts;
  double loss = 0; ///< Of the batch, if each micro-batch has a loss of 1.
};

/// Runs one flow for each part. Pulls, pushes and words without a tensor take no time. Each
/// direction of a link carries one parcel after the other, in their order. Nothing is lost.
///
/// Times are whole numbers of a tick, about 2^-60 of what the batch would take with one computation
/// or parcel at a time. So equal times are equal exactly. A computation that ends is taken before a
/// word that comes at the same time, as words take some time in fact.
///
/// Determinism: the same calls give the same results.
class virtual_line {
public:
  /// Requires: at least one part, one link less than parts, and each time is 0 or more and finite.
  virtual_line(const line_costs& costs, const micro_schedule& schedule);
  ~virtual_line();

  /// Computes a batch. Errors: contract_broken if a flow breaks its contract, which would be a bug.
  result<line_times> run(const batch_cut& cut);

private:
  class state;
  std::unique_ptr<state> state_;
};

} // namespace troupe::planning
