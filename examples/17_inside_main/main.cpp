// Runs two graphs inside a main of its own, without a command line: one with servers, and one with
// shared memory.
#include "actors/graph/run.hpp"
#include "troupe/troupe.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace {

constexpr float slope = 3.0f, intercept = -1.0f;

struct line_trainer final : troupe::trainer {
  double gradient(const troupe::batch& work, troupe::const_tensors line,
                  troupe::mutable_tensors gradients) override {
    float loss = 0;
    std::ranges::fill(gradients[0], 0.0f);
    const auto count = static_cast<float>(work.samples.size());
    for (const auto sample : work.samples) {
      const float x = static_cast<float>(sample % 101) / 50.0f - 1.0f;
      const float error = line[0][0] * x + line[0][1] - (slope * x + intercept);
      loss += error * error / count;
      gradients[0][0] += 2 * error * x / count;
      gradients[0][1] += 2 * error / count;
    }
    return loss;
  }
};

struct line_evaluator final : troupe::evaluator {
  troupe::evaluation evaluate(troupe::const_tensors line) override {
    return {.loss = std::abs(line[0][0] - slope) + std::abs(line[0][1] - intercept)};
  }
};

void clip(const troupe::push_info&, troupe::mutable_tensors gradient) {
  for (float& x : gradient[0])
    x = std::clamp(x, -1.0f, 1.0f);
}

troupe::stage_list path_of(bool has_servers) {
  troupe::stage_list path;
  path.push_back(troupe::map_push("clip", clip));
  if (has_servers) // Shared memory gets no requests that a codec could change.
    path.emplace_back(troupe::compress{.pulls = troupe::encoding::bf16});
  return path;
}

troupe::any_store store_of(bool has_servers) {
  const troupe::table_spec line{.name = "line", .shape = {2}};
  if (has_servers)
    return troupe::servers{.tables = {line}, .count = 2};
  return troupe::shared_memory{{line}};
}

troupe::graph graph_of(bool has_servers, const troupe::run_options& options) {
  troupe::graph g;
  auto model = g.add("model", store_of(has_servers));
  auto learners = g.add("learners", options.workers_of(10'000, std::make_unique<line_trainer>));
  learners.into(path_of(has_servers), model);
  g.add("test", troupe::evaluate{std::make_unique<line_evaluator>}).into(model);
  return g;
}

} // namespace

int main() {
  troupe::settings how{.name = "inside_main"};
  how.options.epochs = 5;
  for (const bool has_servers : {true, false}) {
    const auto done = troupe::run(graph_of(has_servers, how.options), how);
    if (!done) {
      std::fprintf(stderr, "inside_main: %s\n", done.error().text.c_str());
      return 1;
    }
    const auto& line = done->values.at("line");
    std::printf("%s: %.2f x %+.2f, loss %.1f, after %d epochs\n",
                has_servers ? "servers" : "memory", line[0], line[1], done->last->loss,
                static_cast<int>(done->epochs));
  }
}
