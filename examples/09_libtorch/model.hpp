// Declares the model: two convolutions and two full layers. No header of libtorch is needed here,
// as they are slow to compile.
#pragma once

#include "base/error.hpp"
#include "examples/02_async_sgd/data/dataset.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <vector>

namespace convolution {

using shared_images = std::shared_ptr<const async_sgd::dataset>;

/// Returns a table for each parameter of the module, with its name and shape. Troupe draws the
/// first values. Errors: invalid_argument: these are no images of 28 x 28.
troupe::result<std::vector<troupe::table_spec>> tables(const async_sgd::dataset& images);

/// Returns a trainer on the training images. `dropout` is the share of hidden values that are
/// dropped, in [0, 1). It sets libtorch and OpenBLAS to one thread.
std::unique_ptr<troupe::trainer> make_trainer(shared_images images, double dropout);
/// Returns an evaluator of loss and accuracy on the test images.
std::unique_ptr<troupe::evaluator> make_evaluator(shared_images images);

} // namespace convolution
