// Explains why two jobs do not fit together.
#pragma once

#include "serialization/job.hpp"

#include <string>
#include <vector>

namespace troupe::storage {

/// Returns the first difference that fingerprint() sees, tables first, to be put behind "another":
/// "model: table 'w1' is 784x256 there and 784x128 here", "job: the seed is 1 there and 2 here",
/// "data set: it is 'data 5f..' there and 'data 77..' here: ...". Requires: the fingerprints
/// differ.
std::string job_difference(const job_spec& there, const job_spec& here);

/// Returns a line for each of the program's own options whose values differ: "--sigma is '5' here
/// and was '0.01' in checkpoint 3". `where` names the job `there`. Empty if `there` has none, as
/// jobs of older programs.
std::vector<std::string> option_differences(const job_spec& there, const job_spec& here,
                                            const std::string& where);

} // namespace troupe::storage
