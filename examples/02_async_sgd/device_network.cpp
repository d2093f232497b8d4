#include "examples/02_async_sgd/device_network.hpp"

#include "kernels/layers.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

using troupe::put;
using troupe::result;

namespace async_sgd {

namespace {

/// Returns the first failure, if any.
result<void> all_of(std::initializer_list<result<void>> outcomes) {
  for (const auto& x : outcomes)
    if (!x)
      return x;
  return {};
}

void make_dense(const sparse_rows& from, std::size_t features, std::span<const std::uint32_t> which,
                float* out) {
  std::fill_n(out, which.size() * features, 0.0f);
  for (const std::uint32_t sample : which) {
    for (std::uint64_t k = from.first[sample]; k < from.first[sample + 1]; ++k)
      out[from.columns[k]] += from.values[k];
    out += features;
  }
}

} // namespace

result<device_network> device_network::make(std::shared_ptr<troupe::device_platform> on,
                                            std::uint32_t device,
                                            std::vector<std::uint32_t> widths) {
  device_network made{std::move(on)};
  made.widths_ = std::move(widths);
  if (auto prepared = made.prepare(device); !prepared)
    return prepared.error();
  return made;
}

result<void> device_network::prepare(std::uint32_t device) {
  device_ = device;
  layers_.resize(widths_.size() - 1);
  if (auto made = all_of(
        {put(upload_, make_stream(*on_, device)), put(compute_, make_stream(*on_, device)),
         put(download_, make_stream(*on_, device)), put(losses_ready_, make_event(*on_, device))});
      !made)
    return made;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& x = layers_[i];
    x.first = std::exchange(count_, count_ + weights_of(i) + widths_[i + 1]);
    x.count = count_ - x.first;
    if (auto made = all_of({put(x.uploaded, make_event(*on_, device)),
                            put(x.computed, make_event(*on_, device)),
                            put(x.downloaded, make_event(*on_, device))});
        !made)
      return made;
  }
  free_list_ = troupe::device_buffer_pool{on_, device, count_};
  if (auto made = all_of({put(parameters_, free_list_.take()), put(gradient_, free_list_.take()),
                          put(parameters_here_, troupe::make_pinned<float>(*on_, count_))});
      !made)
    return made;
  return put(blas_, troupe::open_blas(*on_, device));
}

result<void> device_network::reserve(std::size_t rows) {
  if (rows <= rows_max_)
    return {};
  const auto floats = [&](std::size_t width) {
    return troupe::make_memory<float>(*on_, device_, rows * width);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::size_t width = widths_[i + 1];
    if (auto made = put(layers_[i].output, floats(width)); !made)
      return made;
    if (i + 1 < layers_.size())
      if (auto made = put(layers_[i].delta, floats(width)); !made)
        return made;
  }
  auto made = all_of({put(input_, floats(widths_.front())), put(losses_, floats(1)),
                      put(input_here_, troupe::make_pinned<float>(*on_, rows * widths_.front())),
                      put(losses_here_, troupe::make_pinned<float>(*on_, rows)),
                      put(labels_, troupe::make_memory<std::uint32_t>(*on_, device_, rows)),
                      put(labels_here_, troupe::make_pinned<std::uint32_t>(*on_, rows))});
  if (made)
    rows_max_ = rows;
  return made;
}

void device_network::upload_rows(const batch_rows& batch) {
  const auto& [data, which, outputs] = batch;
  const std::size_t rows = which.size(), count = rows * widths_.front();
  if (!outputs.empty())
    std::ranges::copy(outputs, input_here_.data());
  else if (const auto* sparse = std::get_if<sparse_rows>(&data.rows))
    make_dense(*sparse, widths_.front(), which, input_here_.data());
  else
    gather(data, widths_.front(), which, input_here_.span().first(count));
  for (std::size_t i = 0; i < rows; ++i)
    labels_here_.data()[i] = data.labels[which[i]];
  const auto& at = upload_.get();
  on_->copy(at, input_.data(), input_here_.data(), count * sizeof(float));
  on_->copy(at, labels_.data(), labels_here_.data(), rows * sizeof(std::uint32_t));
}

void device_network::upload(std::size_t index, troupe::const_tensors parameters,
                            const float* from) {
  auto& x = layers_[index];
  if (from == nullptr) {
    const auto weights = parameters[2 * index], bias = parameters[2 * index + 1];
    assert(weights.size() == weights_of(index) && bias.size() == widths_[index + 1]);
    from = parameters_here_.data();
    float* const here = parameters_here_.data() + x.first;
    std::ranges::copy(bias, std::ranges::copy(weights, here).out);
  }
  on_->copy(upload_.get(), parameters_.get() + x.first, from + x.first, x.count * sizeof(float));
  on_->record(upload_.get(), x.uploaded.get());
}

result<void> device_network::forward(std::size_t index, std::size_t rows) {
  auto& x = layers_[index];
  const auto& at = compute_.get();
  const std::size_t width = widths_[index + 1];
  const float* const in = index == 0 ? input_.data() : layers_[index - 1].output.data();
  const float* const weights = parameters_.get() + x.first;
  on_->wait(at, x.uploaded.get());
  if (auto done = blas_->multiply(at, {false, false, rows, width, widths_[index]}, in, weights,
                                  x.output.data());
      !done)
    return done;
  troupe::kernels::add_bias(at, x.output.span().first(rows * width),
                            {weights + weights_of(index), width}, index + 1 < layers_.size());
  return {};
}

result<void> device_network::backward(std::size_t index, std::size_t rows, bool download) {
  auto& x = layers_[index];
  const auto& at = compute_.get();
  const std::size_t in_width = widths_[index], width = widths_[index + 1];
  const auto delta = (index + 1 < layers_.size() ? x.delta : x.output).span().first(rows * width);
  const float* const in = index == 0 ? input_.data() : layers_[index - 1].output.data();
  float* const gradient = gradient_.get() + x.first;
  troupe::kernels::sum_rows(at, {gradient + weights_of(index), width}, delta);
  if (auto done =
        blas_->multiply(at, {true, false, in_width, width, rows}, in, delta.data(), gradient);
      !done)
    return done;
  if (download) {
    on_->record(at, x.computed.get());
    on_->wait(download_.get(), x.computed.get());
    on_->copy(download_.get(), gradient_here_.data() + x.first, gradient, x.count * sizeof(float));
    on_->record(download_.get(), x.downloaded.get());
  }
  if (index == 0)
    return {};
  auto& below = layers_[index - 1];
  if (auto done = blas_->multiply(at, {false, true, rows, in_width, width}, delta.data(),
                                  parameters_.get() + x.first, below.delta.data());
      !done)
    return done;
  troupe::kernels::relu_gradient(at, below.delta.span().first(rows * in_width),
                                 below.output.span().first(rows * in_width));
  return {};
}

/// Computes the delta of the layer below, which is elsewhere, and copies it to the host.
result<void> device_network::delta_of_input(std::size_t rows) {
  const std::size_t count = rows * widths_.front();
  if (input_delta_.size() < count)
    if (auto made = all_of({put(input_delta_, troupe::make_memory<float>(*on_, device_, count)),
                            put(input_delta_here_, troupe::make_pinned<float>(*on_, count)),
                            put(input_delta_ready_, make_event(*on_, device_))});
        !made)
      return made;
  const auto& at = compute_.get();
  const auto& above = layers_.front();
  const auto* const delta = (layers_.size() > 1 ? above.delta : above.output).data();
  if (auto done = blas_->multiply(at, {false, true, rows, widths_.front(), widths_[1]}, delta,
                                  parameters_.get(), input_delta_.data());
      !done)
    return done;
  troupe::kernels::relu_gradient(at, input_delta_.span().first(count), input_.span().first(count));
  on_->record(at, input_delta_ready_.get());
  on_->wait(download_.get(), input_delta_ready_.get());
  on_->copy(download_.get(), input_delta_here_.data(), input_delta_.data(), count * sizeof(float));
  return {};
}

result<void> device_network::compute(const batch_rows& batch, troupe::const_tensors parameters,
                                     const float* from, bool download) {
  const std::size_t rows = batch.which.size(), classes = widths_.back();
  assert(rows > 0 && parameters.size() == 2 * layers_.size());
  if (auto enough = reserve(rows); !enough)
    return enough;
  upload_rows(batch);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    upload(i, parameters, from);
    if (auto done = forward(i, rows); !done)
      return done;
  }
  const auto& at = compute_.get();
  troupe::kernels::softmax_delta(at, layers_.back().output.span().first(rows * classes),
                                 labels_.span().first(rows), losses_.span().first(rows));
  on_->record(at, losses_ready_.get());
  on_->wait(download_.get(), losses_ready_.get());
  on_->copy(download_.get(), losses_here_.data(), losses_.data(), rows * sizeof(float));
  for (std::size_t i = layers_.size(); i-- > 0;)
    if (auto done = backward(i, rows, download); !done)
      return done;
  return {};
}

double device_network::mean_loss(std::size_t rows) const {
  double loss = 0.0;
  for (const float x : losses_here_.span().first(rows))
    loss += static_cast<double>(x);
  return loss / static_cast<double>(rows);
}

result<double> device_network::gradient_of(const batch_rows& batch,
                                           troupe::const_tensors parameters,
                                           troupe::mutable_tensors gradients,
                                           const troupe::table_listener& ready) {
  if (gradient_here_.size() == 0)
    if (auto made = put(gradient_here_, troupe::make_pinned<float>(*on_, count_)); !made)
      return made.error();
  if (auto begun = compute(batch, parameters, nullptr, true); !begun)
    return begun.error();
  if (!batch.outputs.empty())
    if (auto done = delta_of_input(batch.which.size()); !done)
      return done.error();
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (auto done = on_->synchronize(layers_[i].downloaded.get()); !done)
      return done.error();
    const float* const from = gradient_here_.data() + layers_[i].first;
    std::copy_n(from, weights_of(i), gradients[2 * i].data());
    std::copy_n(from + weights_of(i), widths_[i + 1], gradients[2 * i + 1].data());
    ready(2 * i);
    ready(2 * i + 1);
  }
  return mean_loss(batch.which.size());
}

result<double> device_network::gradient(const samples& data, std::span<const std::uint32_t> which,
                                        troupe::const_tensors parameters,
                                        troupe::mutable_tensors gradients,
                                        const troupe::table_listener& ready) {
  return gradient_of({data, which}, parameters, gradients, ready);
}

result<double>
device_network::gradient_above(const samples& data, std::span<const std::uint32_t> which,
                               std::span<const float> outputs, troupe::const_tensors parameters,
                               troupe::mutable_tensors gradients, std::span<float> delta) {
  assert(outputs.size() == which.size() * widths_.front() && delta.size() == outputs.size());
  auto loss = gradient_of({data, which, outputs}, parameters, gradients, [](std::size_t) {});
  if (!loss)
    return loss;
  if (auto done = on_->synchronize(download_.get()); !done)
    return done.error();
  std::ranges::copy(input_delta_here_.span().first(delta.size()), delta.begin());
  return loss;
}

result<void> device_network::compute_shared(const samples& data,
                                            std::span<const std::uint32_t> which,
                                            troupe::const_tensors parameters,
                                            const shared_parameters& shared) {
  if (const auto found = shared.parameters.find(shared.which)) {
    const auto begun = compute({data, which}, parameters, found->values.get(), false);
    const auto copied = on_->synchronize(upload_.get()); // Until here `found` keeps the source.
    if (begun && copied)
      return {};
    shared.parameters.give_up(shared.which); // The other device may be lost, rather than this one.
  }
  try {
    auto done = compute({data, which}, parameters, nullptr, false);
    if (done)
      done = on_->synchronize(upload_.get());
    if (done)
      shared.parameters.put(shared.which, {device_, parameters_});
    else
      shared.parameters.give_up(shared.which);
    return done;
  } catch (...) {
    shared.parameters.give_up(shared.which); // Other workers wait for these parameters.
    throw;
  }
}

result<device_network::left>
device_network::gradient_on_device(const samples& data, std::span<const std::uint32_t> which,
                                   troupe::const_tensors parameters,
                                   const shared_parameters& shared) {
  constexpr auto partials = troupe::kernels::partials_max;
  if (squares_here_.size() == 0)
    if (auto made = all_of({put(squares_, troupe::make_memory<double>(*on_, device_, partials + 1)),
                            put(squares_here_, troupe::make_pinned<double>(*on_, 1)),
                            put(squares_ready_, make_event(*on_, device_))});
        !made)
      return made.error();
  parameters_.reset(); // Other owners may still use these two buffers.
  gradient_.reset();
  if (auto made = all_of({put(parameters_, free_list_.take()), put(gradient_, free_list_.take())});
      !made)
    return made.error();
  if (auto begun = compute_shared(data, which, parameters, shared); !begun)
    return begun.error();
  const auto& at = compute_.get();
  double* const sum = squares_.data() + partials;
  troupe::kernels::squared_norm(at, {gradient_.get(), count_}, squares_.span().first<partials>(),
                                sum);
  on_->record(at, squares_ready_.get());
  on_->wait(download_.get(), squares_ready_.get());
  on_->copy(download_.get(), squares_here_.data(), sum, sizeof(double));
  if (auto done = on_->synchronize(download_.get()); !done)
    return done.error();
  return left{gradient_, count_, *squares_here_.data(), mean_loss(which.size())};
}

} // namespace async_sgd
