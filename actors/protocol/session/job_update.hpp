// The news of a coordinator for a launcher.
#pragma once

#include "serialization/messages.hpp"

#include <cstdint>
#include <optional>

namespace troupe {

/// The state of the job as the coordinator reports it.
struct job_update {
  job_status desired_state;
  std::uint64_t term = 0;
  bool stop = false;
  std::optional<failure> failed; ///< With `stop`: set if the job failed.
  std::uint64_t sequence = 0;    ///< The message's number within the term.
  /// Without a coordinator: the epochs in parameters that wait to be evaluated; nullopt: none do.
  std::optional<std::uint64_t> offered{};
};

} // namespace troupe
