// Controls the stand-in for NCCL from a test, and counts its communicators.
#pragma once

namespace troupe::test {

struct nccl_script {
  int fail_call = 0;      ///< The number of the call that fails, from 1; 0: no call.
  int async_failure = -1; ///< The device whose communicator reports an error later.
  int living = 0;         ///< Communicators made and neither aborted nor destroyed.
  int aborted = 0;
  int delay = 0; ///< The number of empty operations on each stream before its sum.
};

} // namespace troupe::test

/// Returns the script, and restarts the count of calls.
extern "C" troupe::test::nccl_script* stand_in_script();
