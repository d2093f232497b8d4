#include "actors/process_name.hpp"

namespace troupe {

std::string to_string(const process_name& who) {
  const auto number = " " + std::to_string(who.index);
  switch (who.role) {
  case role::coordinator: return who.index == 0 ? "coordinator" : "coordinator" + number;
  case role::server: return "server" + number;
  case role::worker: return "worker" + number;
  case role::observer: return "launcher" + number;
  }
  return "unknown";
}

} // namespace troupe
