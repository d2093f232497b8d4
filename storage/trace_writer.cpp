#include "storage/trace_writer.hpp"

#include "base/bytes.hpp"
#include "storage/detail/trace_bytes.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace troupe::storage {

trace_writer::trace_writer(std::filesystem::path directory, trace_header header)
    : path_(std::move(directory) / trace_name(header)), header_(detail::bytes_of(header)) {}

trace_writer::~trace_writer() {
  static_cast<void>(flush()); // No caller is left to take an error.
}

void trace_writer::add(const trace_entry& record) {
  if (!failed_)
    unwritten_ += detail::bytes_of(record);
}

result<void> trace_writer::flush() {
  if (unwritten_.empty())
    return {};
  auto written = write();
  failed_ = !written;
  unwritten_.clear();
  return written;
}

result<void> trace_writer::write() {
  if (file_.get() < 0) {
    file_ = descriptor{open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file_.get() < 0)
      return io_failure("write", path_, errno);
    unwritten_.insert(0, header_);
  }
  return write_all(file_, detail::bytes_of(unwritten_), path_);
}

} // namespace troupe::storage
