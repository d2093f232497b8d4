#include "bench/machine_load.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace troupe::bench {

namespace {

constexpr double load_max = 0.2;
constexpr std::chrono::milliseconds look{250};

/// Returns the seconds that all processors have worked since the system's start.
double worked_seconds() {
  std::ifstream file{"/proc/stat"};
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft = 0, stolen = 0;
  file >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft >> stolen;
  return (user + nice + system + interrupts + soft + stolen)
         / static_cast<double>(sysconf(_SC_CLK_TCK));
}

} // namespace

double busy_processors() {
  const auto begin = std::chrono::steady_clock::now();
  const double before = worked_seconds();
  poll(nullptr, 0, static_cast<int>(look.count()));
  const double worked = worked_seconds() - before;
  const auto passed = std::chrono::steady_clock::now() - begin;
  // A virtual machine may count the work of a longer time at once.
  return std::min(worked / std::chrono::duration<double>(passed).count(),
                  static_cast<double>(std::thread::hardware_concurrency()));
}

void declare_any_load(CLI::App& app, bool& any_load) {
  app.add_flag("--any-load", any_load,
               fmt::format("Measure even if more than {} processors are busy", load_max));
}

void require_quiet_machine(bool any_load) {
  if (any_load)
    return;
  if (const double load = busy_processors(); load > load_max)
    throw std::runtime_error{fmt::format("{:.2f} processors are busy, and figures beside a peer "
                                         "need {} or less: end other work, or give --any-load",
                                         load, load_max)};
}

} // namespace troupe::bench
