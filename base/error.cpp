// The names of error codes.
#include "base/error.hpp"

namespace troupe {

const char* to_string(errc code) {
  switch (code) {
  case errc::non_finite: return "non_finite";
  case errc::fenced: return "fenced";
  case errc::rolled_back: return "rolled_back";
  case errc::overloaded: return "overloaded";
  case errc::sum_not_applicable: return "sum_not_applicable";
  case errc::not_ready: return "not_ready";
  case errc::not_yet: return "not_yet";
  case errc::peer_lost: return "peer_lost";
  case errc::timed_out: return "timed_out";
  case errc::shape_mismatch: return "shape_mismatch";
  case errc::version_mismatch: return "version_mismatch";
  case errc::wrong_job: return "wrong_job";
  case errc::malformed: return "malformed";
  case errc::io_failed: return "io_failed";
  case errc::damaged: return "damaged";
  case errc::in_use: return "in_use";
  case errc::invalid_argument: return "invalid_argument";
  case errc::untrusted: return "untrusted";
  case errc::device_failed: return "device_failed";
  case errc::contract_broken: return "contract_broken";
  case errc::job_failed: return "job_failed";
  }
  return "unknown";
}

} // namespace troupe
