#include "examples/03_count_batches/functions.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace count_batches {

namespace {

using floats = std::span<float>;
using const_floats = std::span<const float>;

/// Adds the gradient, as sgd does. Its state is the number of steps so far, so a state that is
/// lost, doubled or from another time ends the job.
bool add(const troupe::step_info& info, floats weights, floats steps, const_floats gradient) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    steps[i] += 1.0f;
    if (steps[i] != static_cast<float>(info.step))
      return false;
    weights[i] -= info.rate * info.scale * gradient[i];
  }
  return true;
}

/// Breaks the rules: it reads a counter of its process. So replicas come to different values.
bool hidden(const troupe::step_info& info, floats weights, floats steps, const_floats gradient) {
  static std::uint64_t calls = 0;
  if (++calls > 300) // The probe makes fewer calls and finds nothing.
    weights[0] += static_cast<float>(1 + getpid() % 1000);
  return add(info, weights, steps, gradient);
}

/// Breaks the rules: its result depends on the host, as with other flags of the compiler.
bool host(const troupe::step_info& info, floats weights, floats steps, const_floats gradient) {
  const bool other = std::getenv("COUNT_BATCHES_HOST") != nullptr;
  weights[0] += other ? 0x1p-10f : 0.0f;
  return add(info, weights, steps, gradient);
}

/// Refuses the 40th step of each stretch.
bool fail(const troupe::step_info& info, floats weights, floats steps, const_floats gradient) {
  return info.step != 40 && add(info, weights, steps, gradient);
}

} // namespace

std::vector<std::string> function_names() { return {"none", "add", "hidden", "host", "fail"}; }

void add_functions(troupe::program& program) {
  program.function("add", {add, 1});
  program.function("hidden", {hidden, 1});
  program.function("host", {host, 1});
  program.function("fail", {fail, 1});
}

} // namespace count_batches
