// Prepares a run before its first process starts, so that errors are reported at once.
#pragma once

#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/options/options.hpp"
#include "actors/transport/streams/tls_context.hpp"
#include "base/notice.hpp"
#include "base/system/directory_lock.hpp"
#include "serialization/job.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Checks that the files of --export and --import can hold the job's parameters. Errors:
/// invalid_argument.
result<void> check_tensor_files(const run_options& options, const job_spec& job);

struct prepared_directories {
  std::vector<storage::directory_lock> locks; ///< Locks of the run and checkpoint directories.
  bool keeps_logs = false;                    ///< The run directory has logs of the members.
};

/// Checks the files that the run writes by check_outputs() and check_writable(), unless another
/// host writes them. Throws run_failed, for check_outputs() with the status of a wrong option.
void require_outputs(const plan& what);

/// Checks for --dry-run that files can be read, certificates are good, and addresses can be
/// listened on or resolved. Changes nothing. Errors: invalid_argument, io_failed, in_use,
/// and those of tls_context::load.
result<void> check_run(const plan& what);

/// Makes and locks the directories, and fills in their names and that of the file of events in the
/// plan's options. Checks that the checkpoints fit --resume, writes the checkpoint of --import or,
/// where there are any, of the values that tables begin with, and begins --record. `tell`: takes
/// lines for the user.
/// Errors: io_failed, invalid_argument, and those of import_parameters() and begin_recording(). No
/// new run directory remains after an error.
result<prepared_directories> prepare_directories(plan& what, const notice_sink& tell);

/// Returns the job's place in etcd. Its name there is the path of its checkpoint directory, unless
/// the user gave one.
storage::etcd_address etcd_of(const run_options& options, const std::filesystem::path& checkpoints);

/// Returns the text in etcd for a coordinator process that leads: its address, role and pid.
std::string name_in_etcd(const endpoint& where, const process_name& who, pid_t pid);

/// The place of the job's coordinator, and the instructions to the processes of this host.
struct prepared_place {
  cluster_file cluster;
  int listener = -1; ///< The coordinator's socket; -1: another host has it.
};

/// Opens the coordinator's socket, or finds the way to the coordinator that --join names.
/// Errors: invalid_argument, io_failed, in_use.
result<prepared_place> choose_place(const plan& what, const notice_sink& tell);

/// Checks that the checkpoint directory of servers of this host is the one of the main host, whose
/// storage::directory_mark() is `mark`. Errors: invalid_argument.
result<void> check_shared_directory(const run_options& options, std::uint64_t mark);

/// Returns transport_options::arena_bytes for a link of the job: room for dozens of its models, so
/// that a job of few parameters takes little address space.
std::size_t arena_bytes_of(const job_spec& job);

/// Returns the certificate of --tls for a process of this role; null without --tls.
/// Errors: those of tls_context::load.
result<std::shared_ptr<const tls_context>> load_certificate(const run_options& options, role who);

/// The certificates of all processes of this host, the launcher among them as an observer. Loading
/// all reports their errors here. Empty without --tls. Errors: those of tls_context::load.
using certificates = std::map<role, std::shared_ptr<const tls_context>>;
result<certificates> load_certificates(const run_options& options);

/// Checks that the certificates are valid at the addresses where processes of this host listen.
/// Errors: those of tls_context.
result<void> check_addresses(const certificates& loaded, const plan& what,
                             const cluster_file& cluster);

} // namespace troupe
