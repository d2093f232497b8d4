// Computes CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), the checksum of every stored
// byte. Uses the SSE4.2 instruction where the processor has it, else a table, with equal results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::storage::detail {

/// Continues `previous`: crc32c(b, crc32c(a)) is the checksum of a followed by b.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

/// Is the table version, for the test that compares both.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t previous = 0);

} // namespace troupe::storage::detail
