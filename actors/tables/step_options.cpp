#include "actors/tables/step_options.hpp"

namespace troupe {

kernels::optimizer kernel_of(optimizer_kind kind) {
  switch (kind) {
  case optimizer_kind::momentum: return kernels::optimizer::momentum;
  case optimizer_kind::adagrad: return kernels::optimizer::adagrad;
  case optimizer_kind::adam: return kernels::optimizer::adam;
  case optimizer_kind::nesterov: return kernels::optimizer::nesterov;
  case optimizer_kind::adamw: return kernels::optimizer::adamw;
  case optimizer_kind::ftrl: return kernels::optimizer::ftrl;
  case optimizer_kind::sgd: break;
  }
  return kernels::optimizer::sgd;
}

kernels::step_options options_of(const optimizer_spec& x, std::uint64_t step) {
  kernels::step_options options;
  options.kind = kernel_of(x.kind);
  options.rate = x.learning_rate;
  options.momentum = x.momentum;
  options.beta2 = x.beta2;
  options.epsilon = x.epsilon;
  options.l1 = x.l1;
  options.beta = x.beta;
  options.weight_decay = x.weight_decay;
  options.clip_value = x.clip_value;
  options.step = step;
  return options;
}

float clip_scale(const optimizer_spec& x, float gradient_norm) {
  return x.clip_norm > 0.0f && gradient_norm > x.clip_norm ? x.clip_norm / gradient_norm : 1.0f;
}

} // namespace troupe
