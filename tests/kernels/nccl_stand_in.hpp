// What a test tells the stand-in for NCCL, and what it counts.
#pragma once

namespace troupe::test {

struct nccl_script {
  int fail_call = 0;      ///< Which call fails, from 1; 0: none.
  int async_failure = -1; ///< The device whose communicator reports an error later.
  int living = 0;         ///< Communicators that were made, and neither aborted nor destroyed.
  int aborted = 0;
  int delay = 0; ///< Operations, which do nothing, on each stream before its sum.
};

} // namespace troupe::test

/// Calls are counted from here on.
extern "C" troupe::test::nccl_script* stand_in_script();
