// Writes one file of a record of pushes.
#pragma once

#include "base/error.hpp"
#include "base/system/file.hpp"
#include "storage/trace.hpp"

#include <filesystem>
#include <string>

namespace troupe::storage {

/// Gathers in memory; what was flushed outlives the process. The file is made by the first flush
/// that has something to write, so a server that applies nothing leaves none. After an error
/// nothing more is written: what is there stays a good beginning.
class trace_writer {
public:
  trace_writer(std::filesystem::path directory, trace_header header);
  trace_writer(const trace_writer&) = delete;
  trace_writer& operator=(const trace_writer&) = delete;
  ~trace_writer();

  void add(const trace_entry& record);
  /// Errors: io_failed, once.
  result<void> flush();

private:
  result<void> write();

  std::filesystem::path path_;
  std::string header_;
  detail::descriptor file_;
  bool failed_ = false;
  std::string unwritten_;
};

} // namespace troupe::storage
