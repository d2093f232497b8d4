#include "examples/02_async_sgd/data/packing.hpp"

#include "storage/file_content.hpp"

namespace async_sgd {

packing packing_of(std::string_view head) {
  using enum troupe::storage::file_format;
  const auto content = troupe::storage::content_of(head);
  if (!content)
    return packing::none;
  switch (content->format) {
  case gzip: return packing::gzip;
  case bzip2: return packing::bzip2;
  case xz: return packing::xz;
  default: return packing::none;
  }
}

} // namespace async_sgd
