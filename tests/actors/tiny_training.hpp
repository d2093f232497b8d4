// The smallest problems that can be trained: pull x to a target; count batches.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/options/options.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

using gradient_function = std::function<double(const batch&, const_tensors, mutable_tensors)>;

class scripted_trainer : public trainer {
public:
  explicit scripted_trainer(gradient_function what) : what_(std::move(what)) {}
  double gradient(const batch& work, const_tensors parameters, mutable_tensors gradients) override {
    return what_(work, parameters, gradients);
  }

private:
  gradient_function what_;
};

inline trainer_factory trainers(gradient_function what) {
  return [what] { return std::make_unique<scripted_trainer>(what); };
}

/// Returns a trainer that gives every element the same gradient.
inline gradient_function constant_gradient(float value) {
  return [value](const batch&, const_tensors, mutable_tensors gradients) {
    for (const auto& table : gradients)
      for (auto& x : table)
        x = value;
    return 1.0;
  };
}

/// Computes the loss (x - 3)^2 / 2 of every element.
inline double to_three(const batch&, const_tensors parameters, mutable_tensors gradients) {
  double loss = 0;
  for (std::size_t t = 0; t < gradients.size(); ++t)
    for (std::size_t i = 0; i < gradients[t].size(); ++i) {
      gradients[t][i] = parameters[t][i] - 3;
      loss += gradients[t][i] * gradients[t][i] / 2;
    }
  return loss;
}

/// Each batch pulls every element to another value, so orders and versions show.
inline double noisy(const batch& work, const_tensors parameters, mutable_tensors gradients) {
  for (std::size_t t = 0; t < gradients.size(); ++t)
    for (std::size_t i = 0; i < gradients[t].size(); ++i)
      gradients[t][i] = parameters[t][i] - static_cast<float>((work.seed >> (i % 32)) & 0xff);
  return 1.0;
}

inline table_spec table_of(const std::string& name, std::uint64_t size) {
  table_spec made;
  made.name = name;
  made.shape = {size};
  return made;
}

/// Returns a graph of two tables, one of several blocks.
inline graph tiny_graph(const run_options& options, std::uint64_t samples, gradient_function what) {
  graph g;
  auto model = g.add("model", options.store({table_of("w", 9000), table_of("bias", 5)}));
  auto learners = g.add("learners", options.workers_of(samples, trainers(std::move(what))));
  learners.into(options.stages(), model);
  return g;
}

/// Returns the plan of this graph. Requires: it has one.
inline plan tiny_plan(const run_options& options, std::uint64_t samples, gradient_function what) {
  auto made = lower("tiny", tiny_graph(options, samples, std::move(what)), options);
  if (!made)
    throw std::runtime_error{made.error().text};
  return *std::move(made);
}

} // namespace troupe::test
