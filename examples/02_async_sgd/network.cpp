#include "examples/02_async_sgd/network.hpp"

#include <cblas.h>

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace async_sgd {

namespace {

/// Computes to[i] += factor * from[i].
void add_scaled(float factor, const float* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] += factor * from[i];
}

void fill_rows(std::span<const float> row, std::size_t rows, float* out) {
  for (std::size_t i = 0; i < rows; ++i)
    std::copy(row.begin(), row.end(), out + i * row.size());
}

void sum_rows(const float* in, std::size_t rows, std::span<float> sum) {
  std::copy_n(in, sum.size(), sum.begin());
  for (std::size_t i = 1; i < rows; ++i)
    add_scaled(1.0f, in + i * sum.size(), sum.size(), sum.data());
}

void relu(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    values[i] = values[i] > 0.0f ? values[i] : 0.0f;
}

/// Sets delta to 0 where the layer's output is 0.
void relu_gradient(const float* output, std::size_t count, float* delta) {
  for (std::size_t i = 0; i < count; ++i)
    delta[i] = output[i] > 0.0f ? delta[i] : 0.0f;
}

/// The product c = op(a) op(b) + keep * c, where op(a) is m x k and op(b) is k x n, all row-major
/// and contiguous.
struct product {
  CBLAS_TRANSPOSE a_form, b_form;
  std::size_t m, n, k;

  void operator()(const float* a, const float* b, float keep, float* c) const {
    const auto rows = static_cast<blasint>(m), columns = static_cast<blasint>(n);
    const auto inner = static_cast<blasint>(k);
    cblas_sgemm(CblasRowMajor, a_form, b_form, rows, columns, inner, 1.0f, a,
                a_form == CblasNoTrans ? inner : rows, b, b_form == CblasNoTrans ? columns : inner,
                keep, c, columns);
  }
};

/// Turns a row of logits into probabilities. Returns log of the sum of exp(logit).
float softmax(float* row, std::size_t classes) {
  const float most = *std::max_element(row, row + classes);
  float sum = 0.0f;
  for (std::size_t i = 0; i < classes; ++i) {
    row[i] = std::exp(row[i] - most);
    sum += row[i];
  }
  const float scale = 1.0f / sum;
  for (std::size_t i = 0; i < classes; ++i)
    row[i] *= scale;
  return most + std::log(sum);
}

/// Checks that the address space for a buffer of OpenBLAS is free, then makes OpenBLAS allocate it.
/// Each thread that multiplies needs one. Without the check OpenBLAS would retry for ever. Throws
/// std::runtime_error.
void take_blas_buffer() {
  constexpr std::size_t buffer_bytes = (std::size_t{128} << 20) + 65'536;
  static std::mutex mutex;
  static std::size_t threads = 0; // All of them may multiply at the same time.
  thread_local bool is_counted = false;
  const std::lock_guard lock{mutex};
  if (is_counted)
    return;
  const std::size_t bytes = (threads + 1) * buffer_bytes;
  void* const probe = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) {
    const int why = errno;
    throw std::runtime_error{"OpenBLAS needs 128 MiB of address space for each thread: "
                             + std::string{std::strerror(why)}};
  }
  ::munmap(probe, bytes);
  ++threads;
  is_counted = true;
  constexpr int n = 64; // Smaller products need no buffer.
  const std::vector<float> factor(n * n);
  std::vector<float> product(n * n);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, factor.data(), n,
              factor.data(), n, 0.0f, product.data(), n);
}

} // namespace

double cross_entropy(std::span<const float> logits, std::uint32_t label) {
  const auto most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0.0;
  for (const float x : logits)
    sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum) - static_cast<double>(logits[label]);
}

network::network(std::vector<std::uint32_t> widths, const samples& data)
    : widths_(std::move(widths)), data_(data), outputs_(layers()), deltas_(layers() - 1) {
  // A process is one worker; more threads would take the cores of its neighbours.
  openblas_set_num_threads(1);
  take_blas_buffer();
}

void network::use_rows(std::span<const std::uint64_t> features) {
  row_of_.resize(widths_.front());
  for (std::uint32_t i = 0; i < features.size(); ++i)
    row_of_[features[i]] = i;
}

void network::reserve(std::size_t rows) {
  if (outputs_.back().size() >= rows * widths_.back())
    return;
  if (!std::holds_alternative<sparse_rows>(data_.rows))
    input_.resize(rows * widths_.front());
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    outputs_[layer].resize(rows * widths_[layer + 1]);
    if (layer + 1 < layers())
      deltas_[layer].resize(rows * widths_[layer + 1]);
  }
}

void network::first_layer_sparse(const sparse_rows& rows, std::span<const std::uint32_t> which,
                                 std::span<const float> weights) {
  const std::size_t width = widths_[1];
  float* out = outputs_[0].data();
  for (const std::uint32_t sample : which) {
    for (std::uint64_t k = rows.first[sample]; k < rows.first[sample + 1]; ++k)
      add_scaled(rows.values[k], weights.data() + row_of(rows.columns[k]) * width, width, out);
    out += width;
  }
}

void network::first_gradient_sparse(const sparse_rows& rows, std::span<const std::uint32_t> which,
                                    std::span<const float> delta, std::span<float> gradient) const {
  const std::size_t width = widths_[1];
  std::ranges::fill(gradient, 0.0f);
  const float* row = delta.data();
  for (const std::uint32_t sample : which) {
    for (std::uint64_t k = rows.first[sample]; k < rows.first[sample + 1]; ++k)
      add_scaled(rows.values[k], row, width, gradient.data() + row_of(rows.columns[k]) * width);
    row += width;
  }
}

void network::forward_layer(std::size_t layer, std::span<const std::uint32_t> which,
                            troupe::const_tensors parameters) {
  const std::size_t rows = which.size(), width = widths_[layer + 1];
  const std::span<const float> weights = parameters[2 * layer];
  float* const out = outputs_[layer].data();
  fill_rows(parameters[2 * layer + 1], rows, out);
  if (layer > 0 || !sparse()) {
    if (layer == 0)
      gather(data_, widths_.front(), which, std::span(input_).first(rows * widths_.front()));
    product{CblasNoTrans, CblasNoTrans, rows, width, widths_[layer]}(input_of(layer),
                                                                     weights.data(), 1.0f, out);
  } else {
    first_layer_sparse(*sparse(), which, weights);
  }
  if (layer + 1 < layers())
    relu(out, rows * width);
}

std::span<const float> network::forward(std::span<const std::uint32_t> which,
                                        troupe::const_tensors parameters) {
  assert(!which.empty() && parameters.size() == 2 * layers());
  reserve(which.size());
  for (std::size_t layer = 0; layer < layers(); ++layer)
    forward_layer(layer, which, parameters);
  return std::span(outputs_.back()).first(which.size() * widths_.back());
}

std::span<const float> network::forward_first(std::span<const std::uint32_t> which,
                                              troupe::const_tensors parameters) {
  assert(!which.empty() && layers() > 1);
  reserve(which.size());
  forward_layer(0, which, parameters);
  return std::span(outputs_.front()).first(which.size() * widths_[1]);
}

void network::backward_first(std::span<const std::uint32_t> which, std::span<const float> delta,
                             troupe::mutable_tensors gradients) {
  gradient_of_layer(0, which, delta, gradients);
}

double network::delta_of_loss(std::span<const std::uint32_t> which) {
  const std::size_t classes = widths_.back();
  const float scale = 1.0f / static_cast<float>(which.size());
  double loss = 0.0;
  float* row = outputs_.back().data();
  for (const std::uint32_t sample : which) {
    const std::uint32_t label = data_.labels[sample];
    const float logit = row[label];
    loss += static_cast<double>(softmax(row, classes) - logit);
    row[label] -= 1.0f;
    for (std::size_t i = 0; i < classes; ++i)
      row[i] *= scale;
    row += classes;
  }
  return loss / static_cast<double>(which.size());
}

void network::gradient_of_layer(std::size_t layer, std::span<const std::uint32_t> which,
                                std::span<const float> delta,
                                troupe::mutable_tensors gradients) const {
  const std::size_t rows = which.size(), in_width = widths_[layer], width = widths_[layer + 1];
  if (!gradients[2 * layer + 1].empty())
    sum_rows(delta.data(), rows, gradients[2 * layer + 1]);
  if (gradients[2 * layer].empty())
    return;
  if (layer == 0 && sparse())
    first_gradient_sparse(*sparse(), which, delta, gradients[0]);
  else
    product{CblasTrans, CblasNoTrans, in_width, width, rows}(input_of(layer), delta.data(), 0.0f,
                                                             gradients[2 * layer].data());
}

double network::backward(std::span<const std::uint32_t> which, troupe::const_tensors parameters,
                         troupe::mutable_tensors gradients, const troupe::table_listener& ready) {
  const std::size_t rows = which.size();
  const double loss = delta_of_loss(which);
  const float* delta = outputs_.back().data();
  std::size_t lowest = 0; // The layers below it are frozen.
  while (lowest + 1 < layers() && gradients[2 * lowest].empty()
         && gradients[2 * lowest + 1].empty())
    ++lowest;
  for (std::size_t layer = layers(); layer-- > 0;) {
    const std::size_t in_width = widths_[layer], width = widths_[layer + 1];
    gradient_of_layer(layer, which, {delta, rows * width}, gradients);
    ready(2 * layer);
    ready(2 * layer + 1);
    if (layer == lowest)
      break;
    float* before = deltas_[layer - 1].data();
    product{CblasNoTrans, CblasTrans, rows, in_width, width}(delta, parameters[2 * layer].data(),
                                                             0.0f, before);
    relu_gradient(input_of(layer), rows * in_width, before);
    delta = before;
  }
  return loss;
}

} // namespace async_sgd
