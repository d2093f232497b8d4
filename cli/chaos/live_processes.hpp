// The processes of a job that run on this host, as /proc tells.
#pragma once

#include "actors/process_name.hpp"

#include <sys/types.h>

#include <map>

namespace troupe::chaos {

/// Children that this launcher started, and that live.
std::map<process_name, pid_t> children_of(pid_t launcher);

double peak_megabytes(pid_t process);
double descriptors(pid_t process);

} // namespace troupe::chaos
