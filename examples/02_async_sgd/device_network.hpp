// Computes the network of network.hpp on a device: the same formulas, with cuBLAS for products and
// with copies that overlap with computing.
//
//   upload    rows, W(1), b(1) | W(2), b(2) | ...
//   compute                    | layer 1    | layer 2 ... | dW(last) | dW(..)  | ...
//   download                                                         | dW(last)| ...
//
// Rows and parameters go up layer by layer, through pinned memory. A layer begins when its own
// parameters are there. Gradients stay, or come down layer by layer while the layers below them are
// computed.
#pragma once

#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "examples/02_async_sgd/data/dataset.hpp"
#include "kernels/devices/blas.hpp"
#include "kernels/devices/device_buffer_pool.hpp"
#include "kernels/devices/memory.hpp"
#include "kernels/devices/shared_parameters.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace async_sgd {

/// A network on one device. Thread safety: none. Cost: allocates only when a batch is larger than
/// all before.
class device_network {
public:
  /// Takes memory for the parameters. Errors: device_failed, if there is not enough, or no cuBLAS.
  static troupe::result<device_network> make(std::shared_ptr<troupe::device_platform> on,
                                             std::uint32_t device,
                                             std::vector<std::uint32_t> widths);

  /// Computes as network::forward and ::backward do, but makes sparse rows dense. Calls `ready` for
  /// each table when it has come down. Returns the mean loss. Errors: device_failed.
  troupe::result<double> gradient(
    const samples& data, std::span<const std::uint32_t> which, troupe::const_tensors parameters,
    troupe::mutable_tensors gradients, const troupe::table_listener& ready = [](std::size_t) {});

  /// Computes the gradient of the upper layers of a network whose first layer is elsewhere.
  /// `outputs`: output of the first layer, behind its ReLU, in place of the data's rows. `delta`
  /// becomes d(loss)/d(input of the ReLU). Both f32[which.size(), widths.front()].
  troupe::result<double> gradient_above(const samples& data, std::span<const std::uint32_t> which,
                                        std::span<const float> outputs,
                                        troupe::const_tensors parameters,
                                        troupe::mutable_tensors gradients, std::span<float> delta);

  /// A gradient left on the device: all layers' weights and biases, one after the other.
  struct left {
    std::shared_ptr<const float> gradient;
    std::size_t count = 0;
    double squares = 0; ///< Sum of squares of all values; not finite if a value is not.
    double loss = 0;
  };
  /// Parameters that other devices of this process need as well.
  struct shared_parameters {
    troupe::shared_parameters& parameters;
    const troupe::value_identity& which;
  };
  troupe::result<left> gradient_on_device(const samples& data, std::span<const std::uint32_t> which,
                                          troupe::const_tensors parameters,
                                          const shared_parameters& shared);

private:
  struct layer {
    std::size_t first = 0, count = 0; ///< Range in all parameters: weights, then biases.
    troupe::owned_event uploaded, computed, downloaded;
    troupe::device_memory<float> output; ///< In the last layer: logits, then their delta.
    troupe::device_memory<float> delta;  ///< Only in hidden layers.
  };

  /// A batch. `outputs`: as in gradient_above(), else empty.
  struct batch_rows {
    const samples& data;
    std::span<const std::uint32_t> which;
    std::span<const float> outputs = {};
  };

  explicit device_network(std::shared_ptr<troupe::device_platform> on) : on_(std::move(on)) {}
  troupe::result<void> prepare(std::uint32_t device);
  troupe::result<void> reserve(std::size_t rows);
  void upload_rows(const batch_rows& batch);
  /// Enqueues all work of a batch. `from`: parameters on another device, or null. `download`: copy
  /// the gradient to the host.
  troupe::result<void> compute(const batch_rows& batch, troupe::const_tensors parameters,
                               const float* from, bool download);
  troupe::result<double> gradient_of(const batch_rows& batch, troupe::const_tensors parameters,
                                     troupe::mutable_tensors gradients,
                                     const troupe::table_listener& ready);
  troupe::result<void> compute_shared(const samples& data, std::span<const std::uint32_t> which,
                                      troupe::const_tensors parameters,
                                      const shared_parameters& shared);
  void upload(std::size_t index, troupe::const_tensors parameters, const float* from);
  troupe::result<void> forward(std::size_t index, std::size_t rows);
  troupe::result<void> backward(std::size_t index, std::size_t rows, bool download);
  troupe::result<void> delta_of_input(std::size_t rows);
  double mean_loss(std::size_t rows) const;
  std::size_t weights_of(std::size_t index) const {
    return std::size_t{widths_[index]} * widths_[index + 1];
  }

  std::shared_ptr<troupe::device_platform> on_; ///< First: other members release memory to it.
  /// Buffers of count_ floats. Second, as destructors of later members may return buffers to it.
  troupe::device_buffer_pool free_list_;
  std::uint32_t device_ = 0;
  std::vector<std::uint32_t> widths_;
  std::unique_ptr<troupe::device_blas> blas_;
  troupe::owned_stream upload_, compute_, download_;
  troupe::owned_event losses_ready_, squares_ready_, input_delta_ready_;
  std::vector<layer> layers_;
  std::size_t count_ = 0; ///< Number of all parameters.
  std::shared_ptr<float> parameters_, gradient_;
  troupe::pinned_memory<float> parameters_here_, gradient_here_;
  troupe::device_memory<double> squares_; ///< Partial sums of squares, then their sum.
  troupe::pinned_memory<double> squares_here_;
  std::size_t rows_max_ = 0;
  troupe::device_memory<float> input_, input_delta_, losses_;
  troupe::pinned_memory<float> input_here_, input_delta_here_, losses_here_;
  troupe::device_memory<std::uint32_t> labels_;
  troupe::pinned_memory<std::uint32_t> labels_here_;
};

} // namespace async_sgd
