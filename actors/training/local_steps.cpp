#include "actors/training/local_steps.hpp"

#include "actors/tables/block_store.hpp"
#include "base/splitmix64.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace troupe {

namespace {

class local_steps_trainer final : public trainer {
public:
  local_steps_trainer(std::unique_ptr<trainer> inner, const local_step_options& options,
                      std::uint64_t inner_samples)
      : inner_(std::move(inner)), options_(options), stretch_(inner_samples) {}

  double gradient(const batch& work, const_tensors parameters, mutable_tensors gradients) override {
    begin(parameters, gradients);
    splitmix64 seeds{work.seed};
    double loss = 0;
    bool is_finite = true;
    for (std::size_t first = 0; is_finite && first < work.samples.size(); first += stretch_) {
      auto part = work;
      part.samples = work.samples.subspan(first, std::min(stretch_, work.samples.size() - first));
      part.seed = seeds.next();
      part.on_ready = {};
      loss += inner_->gradient(part, read_, gradients) * static_cast<double>(part.samples.size());
      is_finite = step(gradients);
    }
    for (std::size_t table = 0; table < gradients.size(); ++table)
      for (std::size_t i = 0; i < gradients[table].size(); ++i)
        gradients[table][i] = is_finite ? parameters[table][i] - values_[table][i]
                                        : std::numeric_limits<float>::quiet_NaN();
    if (!is_finite)
      states_.clear();
    return loss / static_cast<double>(work.samples.size());
  }

private:
  /// Copies the parameters but those of frozen tables; makes a fresh state unless one is kept.
  void begin(const_tensors parameters, mutable_tensors gradients) {
    values_.resize(parameters.size());
    read_.clear();
    for (std::size_t table = 0; table < parameters.size(); ++table) {
      const auto learned = parameters[table].first(gradients[table].size());
      values_[table].assign(learned.begin(), learned.end());
      read_.push_back(learned.empty() ? parameters[table] : std::span<const float>{values_[table]});
    }
    if (options_.keep && !states_.empty())
      return;
    steps_ = 0;
    states_.resize(parameters.size());
    for (std::size_t table = 0; table < parameters.size(); ++table)
      states_[table].assign(
        values_[table].size() * kernels::state_per_weight(options_.optimizer.kind), 0.0f);
  }

  /// Takes an inner step. Returns false if the gradient is not finite.
  bool step(mutable_tensors gradients) {
    auto how = options_of(options_.optimizer, ++steps_);
    if (options_.optimizer.clip_norm > 0.0f) {
      double squares = 0;
      for (const auto each : gradients)
        squares += kernels::squared_norm(each);
      how.gradient_scale = options_.optimizer.clip_scale(static_cast<float>(std::sqrt(squares)));
    }
    bool is_finite = true;
    for (std::size_t table = 0; table < values_.size(); ++table)
      is_finite = kernels::optimizer_step(values_[table], states_[table], values_[table],
                                          states_[table], gradients[table], how)
                  && is_finite;
    return is_finite;
  }

  std::unique_ptr<trainer> inner_;
  local_step_options options_;
  std::size_t stretch_;
  /// One for each table: after the last inner step; empty for a frozen one.
  std::vector<std::vector<float>> values_;
  std::vector<std::span<const float>> read_; ///< Views of `values_`, and frozen tables.
  std::vector<std::vector<float>> states_;   ///< Of the inner optimiser; empty: begins anew.
  std::uint64_t steps_ = 0;                  ///< Inner steps of `states_`.
};

} // namespace

std::unique_ptr<trainer> take_local_steps(std::unique_ptr<trainer> inner,
                                          const local_step_options& options,
                                          std::uint64_t inner_samples) {
  return std::make_unique<local_steps_trainer>(std::move(inner), options, inner_samples);
}

} // namespace troupe
