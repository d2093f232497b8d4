// Fits a straight line to points on it: the smallest program that trains.
#include "troupe/troupe.hpp"

#include <cmath>

constexpr float slope = 3.0f, intercept = -1.0f;

struct line_trainer final : troupe::trainer {
  double gradient(const troupe::batch& work, troupe::const_tensors line,
                  troupe::mutable_tensors gradients) override {
    float loss = 0, along_slope = 0, along_intercept = 0;
    const auto count = static_cast<float>(work.samples.size());
    for (const auto sample : work.samples) {
      const float x = static_cast<float>(sample % 101) / 50.0f - 1.0f;
      const float error = line[0][0] * x + line[0][1] - (slope * x + intercept);
      loss += error * error / count;
      along_slope += 2 * error * x / count;
      along_intercept += 2 * error / count;
    }
    gradients[0][0] = along_slope;
    gradients[0][1] = along_intercept;
    return loss;
  }
};

struct line_evaluator final : troupe::evaluator {
  troupe::evaluation evaluate(troupe::const_tensors line) override {
    const double off = std::abs(line[0][0] - slope) + std::abs(line[0][1] - intercept);
    return {.loss = off, .accuracy = off < 0.01 ? 1.0 : 0.0};
  }
};

int main(int argc, char** argv) {
  return troupe::program{"fit_line", "Fits a line."}.run(argc, argv, [](const auto& options) {
    troupe::graph g;
    auto model = g.add("model", options.store({{.name = "line", .shape = {2}}}));
    auto learners = g.add("learners", options.workers_of(10'000, std::make_unique<line_trainer>));
    learners.into(options.stages(), model);
    g.add("test", troupe::evaluate{std::make_unique<line_evaluator>}).into(model);
    return g;
  });
}
