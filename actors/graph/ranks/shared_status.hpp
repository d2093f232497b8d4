// Shares memory between the ranks of a job without servers and their launcher: all map a file of
// the run directory. Every number has one writer.
#pragma once

#include "actors/graph/ranks/rank_notes.hpp"
#include "base/error.hpp"
#include "base/shared_counter.hpp"
#include "base/system/mapped_memory.hpp"
#include "serialization/ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

namespace troupe {

/// Figures of one rank's process since its start.
struct rank_line {
  std::uint16_t port = 0; ///< Where the rank listens; the launcher sets it before any rank starts.
  std::atomic<std::uint64_t> incarnation{0};
  std::atomic<std::uint64_t> clock{0};   ///< Steps taken.
  std::atomic<std::uint64_t> batches{0}; ///< Own batches whose step was taken.
  std::atomic<std::uint64_t> samples{0}; ///< Samples of these batches.
  std::atomic<double> loss{0};           ///< Sum of their mean losses, of the finite ones.
  std::atomic<std::uint64_t> losses{0};  ///< Number of these finite losses.
  std::atomic<std::uint64_t> unusable{0};
  std::atomic<std::uint64_t> computed{0}; ///< Gradients computed, whether part of a step or not.
  std::atomic<std::uint64_t> wait_us{0};  ///< Time of waiting for other ranks and for bytes.
  std::atomic<std::uint64_t> bytes{0};    ///< Bytes sent by the schedule; as many are received.
  std::atomic<std::uint64_t> rss{0};
  std::atomic<std::uint64_t> heartbeats{0}; ///< Grows while the process can run; see heartbeat.
  std::atomic<bool> training{false}; ///< The rank is in a communicator; else it waits for one.
  rank_notes notes;                  ///< Of the program's own code.
};

class shared_status {
public:
  /// Makes the file in the run directory, which exists. Errors: io_failed.
  static result<shared_status> create(const std::filesystem::path& run_directory,
                                      std::uint32_t ranks, std::size_t parameters);
  /// Maps the file that the launcher made. Errors: io_failed, damaged.
  static result<shared_status> open(const std::filesystem::path& run_directory);

  struct header {
    std::uint32_t ranks = 0;
    std::uint64_t parameters_count = 0;
    /// Ranks inherit the descriptor of a team's memory in place of a listening socket; from the
    /// launcher, before any rank starts.
    bool in_memory = false;
    /// Grows with each loss of a process; from the launcher. Ranks come together under one number.
    kernels::shared_counter generation;
    std::atomic<bool> stop{false}; ///< The user asked to end now.
    // Rank 0 writes the following, except `taken`.
    std::atomic<std::uint64_t> begun{0};      ///< The clock with which the run began.
    std::atomic<std::uint64_t> checkpoint{0}; ///< The newest committed checkpoint.
    std::atomic<bool> unsaved{false};         ///< The last checkpoint could not be written.
    /// Number of offers of parameters to the launcher; they stay until it has taken them.
    std::atomic<std::uint64_t> offered{0};
    std::atomic<std::uint64_t> taken{0};    ///< The last offer taken; the launcher writes it.
    std::atomic<std::uint64_t> epoch{0};    ///< Passes in the offered parameters.
    std::atomic<bool> last{false};          ///< The offered parameters are final.
    std::atomic<bool> done{false};          ///< All ranks have ended their work, with equal values.
    std::atomic<std::uint64_t> checksum{0}; ///< Checksum of these values.
  };

  header& head() const { return *reinterpret_cast<header*>(memory_.data()); }
  rank_line& line(std::uint32_t rank) const;
  std::span<float> parameters() const;

private:
  explicit shared_status(detail::mapped_memory memory) : memory_(std::move(memory)) {}
  static result<shared_status> map(const std::filesystem::path& file, std::size_t size);

  detail::mapped_memory memory_;
};

} // namespace troupe
