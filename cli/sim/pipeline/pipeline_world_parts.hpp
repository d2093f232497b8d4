// Parts of the simulated pipeline that several of its files need.
#pragma once

#include "cli/sim/pipeline/pipeline_world.hpp"

#include <map>
#include <memory>
#include <optional>

namespace troupe::sim {

constexpr milliseconds pipeline_tick_interval = 20ms;

/// Returns a number that depends on both, and on their order.
constexpr std::uint64_t mixed(std::uint64_t one, std::uint64_t other) {
  const auto x =
    (one ^ (other + 0x9e3779b97f4a7c15ull + (one << 6) + (one >> 2))) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 31);
}

/// Is a part's model: a function of its input, its values, and the gradient of its output.
constexpr std::uint64_t input_of(std::uint64_t batch, std::uint32_t micro) {
  return mixed(batch, micro);
}
constexpr std::uint64_t output_of(std::uint64_t input, std::uint64_t value) {
  return mixed(input, value);
}
constexpr double loss_of(std::uint64_t output) { return static_cast<double>(output % 64); }
constexpr std::uint64_t input_gradient_of(std::uint64_t input, std::uint64_t value,
                                          std::uint64_t gradient) {
  return mixed(mixed(input, value), gradient);
}
/// Adds the gradient of a micro-batch to a sum. The order counts.
constexpr std::uint64_t added(std::uint64_t sum, std::uint64_t input_gradient) {
  return sum * 31 + input_gradient + 1;
}

/// Returns the incarnation of a start. Like those of processes they have no order.
constexpr std::uint64_t incarnation_of(std::uint64_t start) { return start ^ 0x2aaa; }

/// Holds a word with its activations or its gradient.
struct pipeline_world::parcel {
  part_word word;
  std::uint64_t value = 0;
};

/// A pull or a push of one part, as the servers get it.
struct pipeline_world::request {
  std::uint32_t line = 0, part = 0;
  std::uint64_t by = 0; ///< Incarnation of the asking part.
  part_attempt of = {}; ///< Of the worker: its incarnation, and the number of its step.
  std::uint64_t batch = 0;
  bool is_push = false;
  std::uint64_t sum = 0;
};

/// Carries out the effects of one part's flow.
class pipeline_world::shell final : public part_effects {
public:
  shell(pipeline_world& in, part& of) : world_(&in), part_(&of) {}

  void send(part_side to, const part_word& what) override;
  void keep_input(std::uint32_t micro) override;
  void keep_gradient(std::uint32_t micro) override;
  void pull(const part_attempt& of, const part_step& step) override;
  void compute_forward(std::uint32_t micro) override;
  void compute_backward(std::uint32_t micro) override;
  void push(const part_attempt& of, const part_step& step) override;
  void done(double loss) override;
  void drop(const part_attempt& which) override;
  void say(const std::string& line) override;

private:
  void compute(std::uint32_t micro, bool is_forward);
  void check_askable(const part_attempt& of) const;

  pipeline_world* world_;
  part* part_;
};

struct pipeline_world::part : end {
  struct computation {
    part_attempt of = {};
    std::uint32_t micro = 0;
    bool is_forward = false;
    bool is_dropped = false;
    std::uint64_t result = 0; ///< Output, or the input's gradient.
    double loss = 0;          ///< Of the output.
  };
  enum class worker_state : std::uint8_t { idle, pulls, flows, pushes };

  std::uint32_t line = 0, index = 0;
  std::uint64_t asks_for = 0; ///< The start of the worker for which it asked the servers last.
  std::unique_ptr<shell> effects = {};
  std::unique_ptr<part_flow> flow = {};
  const parcel* in_hand = nullptr;
  std::optional<part_attempt> fenced = {}; ///< The last attempt of which a request was fenced.

  std::uint64_t value = 0;                            ///< Of the present attempt.
  std::map<std::uint32_t, std::uint64_t> inputs = {}; ///< By micro-batch, from their arrival on.
  std::map<std::uint32_t, std::uint64_t> gradients = {};
  std::uint32_t kept = 0; ///< Inputs from the begin of their forward to the end of their backward.
  std::uint64_t sum = 0;
  std::optional<computation> computing = {}, reported = {};
  std::uint64_t compute_us = 0;

  worker_state worker = worker_state::idle; ///< Of the first part.
  std::uint64_t work = 0;                   ///< Grows with each step of the worker.
  std::uint64_t batch = 0;                  ///< That the worker is at.
  std::uint64_t pushed_sum = 0;             ///< That the worker pushes.

  bool is_first() const { return index == 0; }
  /// Forgets all inputs, gradients and the sum of an attempt.
  void forget() {
    inputs.clear();
    gradients.clear();
    kept = 0;
    sum = 0;
  }
};

/// Returns the side of a part on which a neighbour is.
constexpr part_side side_of(std::uint32_t place, std::uint32_t neighbour) {
  return neighbour < place ? part_side::above : part_side::below;
}

} // namespace troupe::sim
