#include "actors/transport/streams/role_names.hpp"

namespace troupe::detail {

const char* role_name(role which) {
  switch (which) {
  case role::coordinator: return "coordinator";
  case role::server: return "server";
  case role::worker: return "worker";
  case role::observer: return "observer";
  }
  return "unknown";
}

std::string names_of(const std::vector<role>& roles) {
  std::string text;
  for (const role each : roles)
    text += (text.empty() ? "" : " or ") + std::string{role_name(each)};
  return text.empty() ? "no role" : text;
}

} // namespace troupe::detail
