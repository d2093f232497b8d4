// Computes the gradients that count, and checks the sums.
#pragma once

#include "examples/03_count_batches/sums.hpp"
#include "troupe/troupe.hpp"

#include <cstdint>
#include <memory>

namespace count_batches {

std::unique_ptr<troupe::trainer> make_trainer(const schedule& all);

/// Returns a maker of trainers that leave their gradients on a device: a CUDA device if there is
/// one, otherwise an emulated one.
troupe::trainer_maker device_trainers(const schedule& all, std::uint32_t workers_per_process);

/// Its loss is the number of wrong elements. Its accuracy is 1 when there are none, else 0.
std::unique_ptr<troupe::evaluator> make_evaluator(const schedule& all);

} // namespace count_batches
