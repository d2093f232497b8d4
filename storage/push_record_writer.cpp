#include "storage/push_record_writer.hpp"

#include "base/bytes.hpp"
#include "storage/detail/push_record_bytes.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace troupe::storage {

push_record_writer::push_record_writer(std::filesystem::path directory, push_record_header header)
    : path_(std::move(directory) / push_record_name(header)), header_(detail::bytes_of(header)) {}

push_record_writer::~push_record_writer() {
  static_cast<void>(flush()); // Nobody is left to be told.
}

void push_record_writer::add(const push_record& record) {
  if (!failed_)
    unwritten_ += detail::bytes_of(record);
}

result<void> push_record_writer::flush() {
  if (unwritten_.empty())
    return {};
  auto written = write();
  failed_ = !written;
  unwritten_.clear();
  return written;
}

result<void> push_record_writer::write() {
  if (file_.get() < 0) {
    file_ = detail::descriptor{open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file_.get() < 0)
      return detail::io_failure("write", path_, errno);
    unwritten_.insert(0, header_);
  }
  return detail::write_all(file_, detail::bytes_of(unwritten_), path_);
}

} // namespace troupe::storage
