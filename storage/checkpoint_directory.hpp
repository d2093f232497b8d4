// The checkpoints of a state directory: which there are, which are good, which may go.
#pragma once

#include "base/error.hpp"
#include "storage/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace troupe::storage {

/// Removes all but the newest `keep` (>= 1) committed checkpoints, and uncommitted ones older than
/// the newest committed. Those whose manifest or COMMIT is damaged, and those that were found
/// damaged before, do not count, and are removed where they are older than the `keep`; those that
/// cannot be read just now do not count and are left. Returns the numbers removed. A removal that
/// is interrupted leaves an uncommitted checkpoint. Errors: io_failed.
result<std::vector<std::uint64_t>> retain(const std::filesystem::path& directory, std::size_t keep);

/// Newest checkpoint that is committed, of this job (fingerprint), and whose every file has the
/// size and checksum of the manifest. An absent directory is an empty one. Passed over without a
/// word: a checkpoint that has neither manifest nor COMMIT, because its writing ended early.
/// Damaged ones are marked as by scrub().
/// `unreadable`: those that a server could not read, whatever their checksums say; refused too.
/// Errors: wrong_job where the newest committed one belongs to another job; io_failed.
result<found> newest_good(const std::filesystem::path& directory, const job_spec& job,
                          const std::vector<std::uint64_t>& unreadable = {});
/// The same for the checkpoint with this number only. Errors: io_failed, damaged, wrong_job.
result<manifest> verify(const std::filesystem::path& directory, std::uint64_t checkpoint,
                        const job_spec& job);
/// Numbers of the committed ones, oldest first; none where the directory is absent.
/// Errors: io_failed.
result<std::vector<std::uint64_t>> committed(const std::filesystem::path& directory);
/// Reads a whole committed checkpoint again, from the disk where the kernel agrees. One that is
/// damaged is marked so, with a file beside its COMMIT: it no longer counts for retain(), so that
/// older ones stay. Errors: io_failed, damaged.
result<manifest> scrub(const std::filesystem::path& directory, std::uint64_t checkpoint);
/// Largest number used by any checkpoint, committed or not; 0: none.
std::uint64_t last_number(const std::filesystem::path& directory);

} // namespace troupe::storage
