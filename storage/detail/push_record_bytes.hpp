// The bytes of a record's files. Integers are little-endian; each part ends with the CRC-32C of
// what is before it in that part.
#pragma once

#include "base/error.hpp"
#include "storage/push_record.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage::detail {

inline constexpr const char* push_record_suffix = ".pushes";
inline constexpr const char* push_record_job_name = "job";

std::string bytes_of(const job_spec& job);
/// Errors: malformed, damaged.
result<job_spec> job_from(std::string_view bytes);

std::string bytes_of(const push_record_header& header);
/// Takes the header from the front of `bytes`.
/// Errors: malformed (no such file, or another version), damaged.
result<push_record_header> take_push_record_header(std::string_view& bytes);

/// push_record_bytes of them.
std::string bytes_of(const push_record& record);
/// Nothing where they are not what bytes_of() makes.
std::optional<push_record> push_record_from(std::string_view bytes);

} // namespace troupe::storage::detail
