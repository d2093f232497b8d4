// A pipeline of two parts whose gradients a push function changes: it adds noise to each of them.
// A part multiplies by a vector: the first one the inputs of samples, the last one its output. The
// loss is half the square of the distance from twice the input.
#include "troupe/troupe.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>

namespace {

constexpr std::size_t width = 8;

float input_of(std::uint32_t sample) { return static_cast<float>(sample % 10) / 10; }

class half final : public troupe::part {
public:
  explicit half(bool is_last) : is_last_(is_last) {}

  void forward(const troupe::micro_batch& micro, troupe::const_tensors values,
               std::span<const float>, troupe::part_output& out) override {
    if (is_last_)
      return;
    auto to = out.of_width(width).begin();
    for (const auto sample : micro.samples)
      for (const float weight : values[0])
        *to++ = weight * input_of(sample);
  }

  double backward(const troupe::micro_batch& micro, troupe::const_tensors values,
                  std::span<const float> in, std::span<const float> out_gradient,
                  troupe::mutable_tensors gradients, std::span<float> in_gradient) override {
    std::ranges::fill(gradients[0], 0.0f);
    const auto count = micro.samples.size();
    double loss = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = input_of(micro.samples[i]);
      if (!is_last_) {
        for (std::size_t k = 0; k < width; ++k)
          gradients[0][k] += x * out_gradient[i * width + k];
        continue;
      }
      float away = -2 * x;
      for (std::size_t k = 0; k < width; ++k)
        away += values[0][k] * in[i * width + k];
      loss += 0.5 * away * away / static_cast<double>(count);
      away /= static_cast<float>(count);
      for (std::size_t k = 0; k < width; ++k) {
        gradients[0][k] += away * in[i * width + k];
        in_gradient[i * width + k] = away * values[0][k];
      }
    }
    return loss;
  }

private:
  bool is_last_;
};

/// Depends on the seed of the push, and not on the calls before.
void add_noise(const troupe::push_info& push, troupe::mutable_tensors gradients) {
  std::mt19937_64 random{push.seed};
  for (const auto gradient : gradients)
    for (float& x : gradient)
      x += 0.01f * (static_cast<float>(random() % 2001) / 1000 - 1);
  push.notes.count("changed");
}

} // namespace

int main(int argc, char** argv) {
  troupe::run_options defaults;
  defaults.workers.count = 1; // One line.
  troupe::program program{"noisy_parts", "Trains two parts with noise in their gradients.",
                          defaults};
  return program.run(argc, argv, [](const troupe::run_options& options) {
    const troupe::initializer drawn{troupe::initializer_kind::normal, 0.5f};
    troupe::graph g;
    auto store =
      g.add("model", options.store({{.name = "above", .shape = {width}, .init = drawn},
                                    {.name = "below", .shape = {width}, .init = drawn}}));
    g.add("line",
          options.pipeline_of(6400, {{{"above"}, [] { return std::make_unique<half>(false); }},
                                     {{"below"}, [] { return std::make_unique<half>(true); }}}))
      .into(troupe::map_push("noise", add_noise), options.stages(), store);
    return g;
  });
}
