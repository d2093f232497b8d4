#include "storage/push_record_writer.hpp"

#include "storage/detail/file.hpp"
#include "storage/detail/push_record_bytes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace troupe::storage {

push_record_writer::push_record_writer(std::filesystem::path directory, push_record_header header)
    : path_(std::move(directory) / push_record_name(header)), header_(detail::bytes_of(header)) {}

push_record_writer::~push_record_writer() {
  static_cast<void>(flush()); // Nobody is left to be told.
  if (file_ >= 0)
    close(file_);
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
  if (file_ < 0) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file_ < 0)
      return detail::io_failure("write", path_, errno);
    unwritten_.insert(0, header_);
  }
  for (std::string_view rest = unwritten_; !rest.empty();) {
    const auto n = ::write(file_, rest.data(), rest.size());
    if (n >= 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      return detail::io_failure("write", path_, errno);
  }
  return {};
}

} // namespace troupe::storage
