// What the ranks of a job without servers and their launcher tell each other: memory that all of
// them have mapped, in a file of the run directory. Every number has one writer.
#pragma once

#include "base/error.hpp"
#include "base/shared_counter.hpp"
#include "serialization/ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace troupe {

/// Of one rank's process, since its start.
struct peer_line {
  std::uint16_t port = 0; ///< Where the rank listens; from the launcher, before any rank starts.
  std::atomic<std::uint64_t> incarnation{0};
  std::atomic<std::uint64_t> clock{0};   ///< Steps taken.
  std::atomic<std::uint64_t> batches{0}; ///< Of its own that are part of a step ...
  std::atomic<std::uint64_t> samples{0}; ///< ... their samples ...
  std::atomic<double> loss{0};           ///< ... and the sum of their mean losses ...
  std::atomic<std::uint64_t> losses{0};  ///< ... as far as these are finite: so many.
  std::atomic<std::uint64_t> unusable{0};
  std::atomic<std::uint64_t> computed{0}; ///< Gradients, whether they became part of a step or not.
  std::atomic<std::uint64_t> wait_us{0};  ///< For other ranks and for bytes.
  std::atomic<std::uint64_t> bytes{0};    ///< Sent, and as many received, by the schedule.
  std::atomic<std::uint64_t> rss{0};
  std::atomic<std::uint64_t> beats{0}; ///< Grows while the process is able to run: see pulse.
  std::atomic<bool> training{false};   ///< It is one of a team; else it waits for one.
};

class shared_status {
public:
  /// A file in the run directory, which exists. Errors: io_failed.
  static result<shared_status> create(const std::filesystem::path& run_directory,
                                      std::uint32_t ranks, std::size_t parameters);
  /// Errors: io_failed, damaged.
  static result<shared_status> open(const std::filesystem::path& run_directory);
  shared_status(shared_status&& other) noexcept;
  shared_status& operator=(shared_status&&) = delete;
  ~shared_status();

  struct header {
    std::uint32_t ranks = 0;
    std::uint64_t parameters_count = 0;
    /// Grows with each loss of a process; from the launcher. Ranks come together under one number.
    kernels::shared_counter generation;
    std::atomic<std::uint32_t> losses{0}; ///< The number itself.
    std::atomic<bool> stop{false};        ///< The user asked to end now.
    // From rank 0:
    std::atomic<std::uint64_t> begun{0};      ///< The clock with which the run began.
    std::atomic<std::uint64_t> checkpoint{0}; ///< The newest committed one.
    std::atomic<bool> unsaved{false};         ///< The last checkpoint could not be written.
    /// How often parameters were offered to the launcher; they stay until it has taken them.
    std::atomic<std::uint64_t> offered{0};
    std::atomic<std::uint64_t> taken{0}; ///< From the launcher.
    std::atomic<std::uint64_t> epoch{0}; ///< What is offered is so many passes old ...
    std::atomic<bool> last{false};       ///< ... and final.
    std::atomic<bool> done{false};       ///< All ranks have ended their work, with equal values ...
    std::atomic<std::uint64_t> checksum{0}; ///< ... that have this one.
  };

  header& head() const { return *reinterpret_cast<header*>(begin_); }
  peer_line& line(std::uint32_t rank) const;
  std::span<float> parameters() const;

private:
  shared_status(std::byte* begin, std::size_t size) : begin_(begin), size_(size) {}
  static result<shared_status> map(const std::filesystem::path& file, std::size_t size);

  std::byte* begin_;
  std::size_t size_;
};

} // namespace troupe
