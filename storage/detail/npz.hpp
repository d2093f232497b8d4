// Reads and writes .npz by libzip: a zip archive of .npy files. Members are written uncompressed
// with a fixed date, so that equal tensors give equal bytes. Deflated members and zip64 can be
// read.
#pragma once

#include "base/error.hpp"
#include "storage/tensor_file.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

/// Returns the archive's bytes. Requires: check_tensors(). Errors: invalid_argument (a name of
/// 64 KiB or more), io_failed (libzip has no memory).
result<std::string> encode_npz(std::span<const tensor> tensors);

/// Returns tensors in the directory's order. A member's memory is allocated once its .npy header,
/// its size in the directory and its packed size agree, and `wants` is empty or true. A small file
/// cannot take it all. With `wants`, a member that is no .npy is left out, and one that cannot be
/// read has the reason as `tensor::unread`. Errors: invalid_argument (encryption, a method other
/// than deflate; those of parse_npy()), malformed, damaged (checksum, size or deflate stream).
result<std::vector<tensor>> decode_npz(std::string_view bytes, const tensor_filter& wants = {});

} // namespace troupe::storage::detail
