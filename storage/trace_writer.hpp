// Writes one file of a trace.
#pragma once

#include "base/error.hpp"
#include "base/system/file.hpp"
#include "storage/trace.hpp"

#include <filesystem>
#include <string>

namespace troupe::storage {

/// Gathers records in memory; flushed records outlive the process. The first flush with a record
/// creates the file, so a server that applies no push leaves none. After an error no more is
/// written: the existing file stays a valid beginning.
class trace_writer {
public:
  trace_writer(std::filesystem::path directory, trace_header header);
  trace_writer(const trace_writer&) = delete;
  trace_writer& operator=(const trace_writer&) = delete;
  ~trace_writer();

  void add(const trace_entry& record);
  /// Writes the gathered records. Errors: io_failed, once.
  result<void> flush();

private:
  result<void> write();

  std::filesystem::path path_;
  std::string header_;
  descriptor file_;
  bool failed_ = false;
  std::string unwritten_;
};

} // namespace troupe::storage
