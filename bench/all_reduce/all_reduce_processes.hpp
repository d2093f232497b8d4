// Runs one process for each rank of a contestant of all_reduce.py; rank 0 is this process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::bench {

/// Returns the exit status. Requires: no threads yet.
template <class Body>
int in_processes(std::size_t ranks, Body body) {
  std::vector<pid_t> others;
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      body(rank);
      _exit(0);
    }
    others.push_back(child);
  }
  body(0);
  int worst = 0;
  for (const pid_t other : others) {
    int status = 0;
    waitpid(other, &status, 0);
    worst = std::max(worst, status);
  }
  return worst == 0 ? 0 : 1;
}

} // namespace troupe::bench
