// Encodes and decodes the files of a trace. Integers are little-endian; each part ends with the
// CRC-32C of its preceding bytes.
#pragma once

#include "base/error.hpp"
#include "storage/trace.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage::detail {

inline constexpr const char* trace_suffix = ".pushes";
inline constexpr const char* trace_job_name = "job";

std::string bytes_of(const job_spec& job);
/// Errors: malformed, damaged.
result<job_spec> job_from(std::string_view bytes);

std::string bytes_of(const trace_header& header);
/// Takes the header from the front of `bytes`. Errors: malformed (not such a file, or another
/// version), damaged.
result<trace_header> take_trace_header(std::string_view& bytes);

/// Returns `trace_bytes` bytes.
std::string bytes_of(const trace_entry& record);
/// Returns nullopt unless the bytes are from bytes_of().
std::optional<trace_entry> trace_entry_from(std::string_view bytes);

} // namespace troupe::storage::detail
