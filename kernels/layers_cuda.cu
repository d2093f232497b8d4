#include "kernels/launch.inl.hpp"
#include "kernels/layers.hpp"

#include <cassert>
#include <cmath>

namespace troupe::kernels {

namespace {

struct bias_body {
  float* z;
  const float* bias;
  std::size_t columns;
  bool relu;
  TROUPE_HD void operator()(std::size_t i) const {
    const float value = z[i] + bias[i % columns];
    z[i] = relu && !(value > 0.0f) ? 0.0f : value;
  }
};

struct relu_gradient_body {
  float* delta;
  const float* output;
  TROUPE_HD void operator()(std::size_t i) const {
    if (!(output[i] > 0.0f))
      delta[i] = 0.0f;
  }
};

/// A thread sums a column, so that neighbouring threads read neighbouring elements.
struct sum_rows_body {
  float* sum;
  const float* in;
  std::size_t rows, columns;
  TROUPE_HD void operator()(std::size_t column) const {
    float total = in[column];
    for (std::size_t row = 1; row < rows; ++row)
      total += in[row * columns + column];
    sum[column] = total;
  }
};

/// A block of threads has a row.
struct softmax_block {
  struct shared {
    float values[block_threads];
    float most;
  };
  static constexpr unsigned halvings = 8;
  static_assert(block_threads == 1u << halvings);
  // The largest logit, then the sum of exp(), each loaded and halved; then the writing.
  static constexpr unsigned phases = 2 * (1 + halvings) + 1;

  float* z;
  const std::uint32_t* label;
  float* loss;
  std::size_t columns;
  float scale;

  TROUPE_HD static void halve(unsigned half, unsigned thread, shared& memory, bool sum) {
    if (thread >= half)
      return;
    const float a = memory.values[thread], b = memory.values[thread + half];
    memory.values[thread] = sum ? a + b : a < b ? b : a;
  }

  TROUPE_HD void operator()(unsigned phase, unsigned block, unsigned thread, shared& memory) const {
    float* const row = z + std::size_t{block} * columns;
    const bool first = phase <= halvings;
    const unsigned step = first ? phase : phase - halvings - 1;
    if (phase + 1 == phases) {
      const float sum = memory.values[0], most = memory.most;
      const std::uint32_t right = label[block];
      for (std::size_t i = thread; i < columns; i += block_threads) {
        const float logit = row[i];
        if (i == right)
          loss[block] = most + std::log(sum) - logit;
        row[i] = (std::exp(logit - most) / sum - (i == right ? 1.0f : 0.0f)) * scale;
      }
    } else if (step == 0 && first) {
      float most = row[thread < columns ? thread : 0];
      for (std::size_t i = thread; i < columns; i += block_threads)
        most = most < row[i] ? row[i] : most;
      memory.values[thread] = most;
    } else if (step == 0) {
      float sum = 0.0f;
      for (std::size_t i = thread; i < columns; i += block_threads)
        sum += std::exp(row[i] - memory.most);
      memory.values[thread] = sum;
    } else {
      halve(block_threads >> step, thread, memory, !first);
      if (first && step == halvings && thread == 0)
        memory.most = memory.values[0];
    }
  }
};

} // namespace

void add_bias(stream at, std::span<float> z, std::span<const float> bias, bool relu) {
  assert(z.size() % bias.size() == 0);
  launch_elements(at, z.size(), bias_body{z.data(), bias.data(), bias.size(), relu});
}

void relu_gradient(stream at, std::span<float> delta, std::span<const float> output) {
  assert(delta.size() == output.size());
  launch_elements(at, delta.size(), relu_gradient_body{delta.data(), output.data()});
}

void sum_rows(stream at, std::span<float> sum, std::span<const float> in) {
  assert(in.size() % sum.size() == 0);
  launch_elements(at, sum.size(),
                  sum_rows_body{sum.data(), in.data(), in.size() / sum.size(), sum.size()});
}

void softmax_delta(stream at, std::span<float> z, std::span<const std::uint32_t> label,
                   std::span<float> loss) {
  assert(z.size() % label.size() == 0 && loss.size() == label.size());
  const std::size_t rows = label.size();
  launch_blocks(at, static_cast<unsigned>(rows),
                softmax_block{z.data(), label.data(), loss.data(), z.size() / rows,
                              1.0f / static_cast<float>(rows)});
}

} // namespace troupe::kernels
