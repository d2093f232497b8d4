// Reads and writes the .npy format (numpy.lib.format): magic, version, length of the header, the
// header, the values. The header is a Python dictionary literal with the keys descr, fortran_order
// and shape. It is padded with spaces and a newline, so that the values begin at a multiple of 64.
#pragma once

#include "base/error.hpp"
#include "storage/detail/tensor_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

/// Returns the bytes in front of the values: version 1.0, or 2.0 if 1.0 cannot hold the header.
std::string npy_head(std::span<const std::uint64_t> shape);

struct npy_parts {
  std::vector<std::uint64_t> shape;
  number_format format;
  std::string_view values; ///< All bytes behind the header, borrowed from the input.
};

/// The bytes that npy_head_bytes() needs. No file is shorter.
constexpr std::size_t npy_prefix_bytes = 12;

/// Returns the number of bytes in front of the values, as the file's first bytes say. It is only
/// meaningful if parse_npy() accepts the file.
std::uint64_t npy_head_bytes(std::string_view prefix);

/// Reads versions 1.0 to 3.0, also headers of Python 2 with numbers such as 2L. Errors:
/// invalid_argument (dtype other than a float, Fortran order, a later version), malformed.
result<npy_parts> parse_npy(std::string_view bytes);

} // namespace troupe::storage::detail
