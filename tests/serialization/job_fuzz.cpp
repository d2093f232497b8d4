// Feeds any bytes to wire::decode_job, and its jobs to functions that rely on a valid job.
#include "serialization/layout.hpp"
#include "serialization/wire.hpp"
#include "tests/serialization/fuzz_main.hpp"
#include "tests/serialization/random_messages.hpp"

#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const auto decoded = wire::decode_job(std::as_bytes(std::span{data, size}));
  if (!decoded)
    return 0;
  const auto& job = *decoded;
  const auto again = wire::decode_job(wire::encode_job(job));
  if (!validate(job) || !again || fingerprint(*again) != fingerprint(job))
    std::abort();
  const auto map = make_partition_map(job, job.servers, {});
  const batch_id last{job.batches() - 1};
  const auto clock = bsp_clock(job, last);
  if (map.size() != job.partitions || bsp_first(job, clock) > last || bsp_end(job, clock) <= last)
    std::abort();
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace troupe::test;
  return mutate_or_make(data, size, max_size, seed, [](random_source& random) {
    return troupe::wire::encode_job(random_job(random));
  });
}
#endif
