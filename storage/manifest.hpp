// Makes a checkpoint valid by its manifest and the COMMIT that seals it.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage {

/// Returns the manifest as JSON for people and programs. The job is in it twice: as readable words,
/// and exactly, as `spec`: the bytes of wire::encode_job in hexadecimal. Only `spec` is read.
std::string to_json(const manifest& what);
/// Errors: malformed.
result<manifest> manifest_from_json(std::string_view text);

/// Makes checkpoint N exist: manifest, sync, then COMMIT by rename. Idempotent: the same manifest
/// may be committed again. Errors: io_failed, also if a file of a part is missing or has another
/// size.
result<void> commit(const std::filesystem::path& directory, const manifest& what);

/// Returns whether checkpoint N has a COMMIT, valid or not.
bool is_committed(const std::filesystem::path& directory, std::uint64_t checkpoint);

/// Returns the sealed manifest of checkpoint N; does not check its files. Errors: io_failed (no
/// such checkpoint, never committed, unreadable), damaged.
result<manifest> load_manifest(const std::filesystem::path& directory, std::uint64_t checkpoint);

/// Checks that the checkpoint is of this job. Errors: wrong_job if the fingerprints differ:
/// "checkpoint 12 in DIR belongs to another model: table 'w1' is 784x256 there and 784x128 here".
result<void> check_job(const std::filesystem::path& directory, const manifest& what,
                       const job_spec& job);

} // namespace troupe::storage
