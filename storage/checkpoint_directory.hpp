// Lists, verifies and removes the checkpoints of a state directory.
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
/// the newest committed. Damaged ones do not count, and are removed if they are older than the
/// `keep`: their manifest or COMMIT is damaged, or they are marked as damaged. Unreadable ones do
/// not count and stay. Returns the numbers removed. An interrupted removal leaves an uncommitted
/// checkpoint. Errors: io_failed.
result<std::vector<std::uint64_t>> retain(const std::filesystem::path& directory, std::size_t keep);

/// Finds the newest checkpoint that is committed, of this job (fingerprint), and whose every file
/// has the size and checksum of the manifest. An absent directory counts as empty. A checkpoint
/// without manifest and COMMIT is silently skipped: its writing ended early. Damaged ones are
/// marked as by scrub(). `unreadable`: checkpoints that a server could not read, whatever their
/// checksums; refused too. Errors: wrong_job if the newest committed one belongs to another job;
/// io_failed.
result<checkpoint_search_result> newest_good(const std::filesystem::path& directory,
                                             const job_spec& job,
                                             const std::vector<std::uint64_t>& unreadable = {});
/// Verifies the checkpoint with this number in the same way. Errors: io_failed, damaged, wrong_job.
result<manifest> verify(const std::filesystem::path& directory, std::uint64_t checkpoint,
                        const job_spec& job);
/// Returns the numbers of the committed checkpoints, oldest first; empty if the directory is
/// absent. Errors: io_failed.
result<std::vector<std::uint64_t>> committed(const std::filesystem::path& directory);
/// Reads a whole committed checkpoint again, from the disk if the kernel drops its cache. Marks a
/// damaged one with a file beside its COMMIT. It then no longer counts for retain(), so that older
/// ones stay. Errors: io_failed, damaged.
result<manifest> scrub(const std::filesystem::path& directory, std::uint64_t checkpoint);
/// Returns the largest number of any checkpoint, committed or not; 0: none.
std::uint64_t last_number(const std::filesystem::path& directory);

} // namespace troupe::storage
