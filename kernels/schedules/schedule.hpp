// A schedule: how devices add up their gradients, as plain data that any executor can carry out
// (threads on host memory, processes over sockets, CUDA peers).
//
// Each device has a buffer of n elements, cut into `chunks` of equal size (range_of_chunk). A step
// copies one chunk of a device's buffer over the same chunk of another's, or adds it to that chunk.
//
// Meaning:      the steps one after the other, in the order of the list.
// Concurrency:  an executor may do steps at the same time or in another order. If one of
//               two steps writes memory that the other reads or writes, they must stay in the order
//               of the list: dependencies() lists them. A step needs no other order.
// Determinism:  bitwise: each sum is added up in the order of the list by every executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::kernels {

enum class step_kind : std::uint8_t { copy, reduce };

struct schedule_step {
  std::uint32_t from = 0; ///< Source: a device or a staging place.
  std::uint32_t to = 0;   ///< Target, overwritten (copy) or added to (reduce).
  std::uint32_t chunk = 0;
  step_kind kind = step_kind::copy;

  bool operator==(const schedule_step&) const = default;
};

/// The state after all steps. Device d owns chunks [d, d + 1) * chunks / devices; in a broadcast
/// the root owns all chunks.
enum class collective : std::uint8_t {
  all_reduce,     ///< Every device has the sum of every chunk over all devices.
  reduce_scatter, ///< Every device has the sum of the chunks that it owns.
  all_gather,     ///< Every device has every chunk as its owner had it; other buffers begin empty.
  broadcast,      ///< Every device has every chunk of the root; other buffers begin empty.
};

struct schedule {
  collective goal = collective::all_reduce;
  std::uint32_t devices = 0; ///< Places 0 .. devices - 1, each with its own buffer of numbers.
  std::uint32_t staging = 0; ///< Further places, from `devices` on: memory that begins empty.
  std::uint32_t chunks = 0;  ///< reduce_scatter, all_gather: a multiple of `devices`.
  std::vector<schedule_step> steps;
  std::uint32_t root = 0; ///< Root of a broadcast.

  bool operator==(const schedule&) const = default;
};

struct chunk_range {
  std::size_t begin = 0;
  std::size_t size = 0; ///< Sizes of two chunks differ by at most one; 0 if chunks > count.

  bool operator==(const chunk_range&) const = default;
};

/// Returns the elements of a chunk, of `count` elements (or bytes) in `chunks` chunks.
chunk_range range_of_chunk(std::size_t count, std::uint32_t chunks, std::uint32_t chunk);

/// Returns the device that owns a chunk. Requires: a broadcast, or chunks is a multiple of devices.
std::uint32_t owner_of_chunk(const schedule& plan, std::uint32_t chunk);

/// Returns a hash that is equal for equal schedules, and differs for those ranks confuse in
/// practice.
std::uint64_t fingerprint_of(const schedule& plan);

/// Returns for each step the earlier steps that must be done before it begins. Dependencies that
/// follow from others by transitivity may be left out. Requires: places and chunks of all steps
/// exist.
std::vector<std::vector<std::uint32_t>> dependencies(const schedule& plan);

} // namespace troupe::kernels
