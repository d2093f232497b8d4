// A schedule: how devices add up their gradients, as plain data that any executor can carry out
// (threads on host memory, processes over sockets, CUDA peers).
//
// Each device has a buffer of n elements, cut into `chunks` of equal size (range_of_chunk). A step
// copies one chunk of one device's buffer over the same chunk of another one's, or adds it to that.
//
// Meaning:      the steps one after the other, in the order of the list.
// Concurrency:  an executor may do steps at the same time or in another order, as long as two steps
//               of which one writes what the other reads or writes stay in the order of the list:
//               dependencies() says which. A step needs nothing else.
// Determinism:  bitwise: each sum is added up in the order of the list by every executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::kernels {

enum class step_kind : std::uint8_t { copy, reduce };

struct schedule_step {
  std::uint32_t from = 0; ///< Whose chunk is read: a device or a staging place.
  std::uint32_t to = 0;   ///< Whose chunk is overwritten (copy) or added to (reduce).
  std::uint32_t chunk = 0;
  step_kind kind = step_kind::copy;

  bool operator==(const schedule_step&) const = default;
};

/// What holds when the steps are done. Device d owns chunks [d, d + 1) * chunks / devices; in a
/// broadcast the root owns all of them.
enum class collective : std::uint8_t {
  all_reduce,     ///< Every device has the sum of every chunk over all devices.
  reduce_scatter, ///< Every device has the sum of the chunks that it owns.
  all_gather,     ///< Every device has every chunk as its owner had it; the others began empty.
  broadcast,      ///< The same.
};

struct schedule {
  collective goal = collective::all_reduce;
  std::uint32_t devices = 0; ///< Places 0 .. devices - 1, each with a buffer of its own numbers.
  std::uint32_t staging = 0; ///< Further places, from `devices` on: memory that begins empty.
  std::uint32_t chunks = 0;  ///< reduce_scatter, all_gather: a multiple of `devices`.
  std::vector<schedule_step> steps;
  std::uint32_t root = 0; ///< Of a broadcast.

  bool operator==(const schedule&) const = default;
};

struct chunk_range {
  std::size_t begin = 0;
  std::size_t size = 0; ///< Sizes of two chunks differ by one at most; 0 where chunks > count.

  bool operator==(const chunk_range&) const = default;
};

/// The elements of a chunk, of `count` elements (or bytes) in `chunks` chunks.
chunk_range range_of_chunk(std::size_t count, std::uint32_t chunks, std::uint32_t chunk);

/// Requires: a broadcast, or chunks is a multiple of devices.
std::uint32_t owner_of_chunk(const schedule& plan, std::uint32_t chunk);

/// Equal for equal schedules; for others that ranks may have by mistake it differs.
std::uint64_t fingerprint_of(const schedule& plan);

/// For each step the earlier steps that must be done before it may begin; what follows from others
/// by transitivity may be left out. Requires: places and chunks of all steps exist.
std::vector<std::vector<std::uint32_t>> dependencies(const schedule& plan);

} // namespace troupe::kernels
