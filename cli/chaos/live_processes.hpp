// Finds the processes of a job that run on this host, in /proc.
#pragma once

#include "actors/protocol/process_name.hpp"

#include <sys/types.h>

#include <map>

namespace troupe::chaos {

/// Returns the live children that this launcher started.
std::map<process_name, pid_t> children_of(pid_t launcher);

double peak_megabytes(pid_t process);
double descriptors(pid_t process);

} // namespace troupe::chaos
