// Declares the model: a rating is mean + b(u) + b(i) + p(u) . q(i). A user or an item has one row,
// which begins with its bias b and goes on with its factors, p or q.
#pragma once

#include "examples/06_matrix_factorisation/ratings.hpp"
#include "troupe/troupe.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace factorisation {

using shared_ratings = std::shared_ptr<const ratings>;

/// Returns the sparse tables `users` and `items`. The keys of their rows are those of the ratings.
std::vector<troupe::table_spec> tables(std::uint32_t factors);

/// Returns a trainer on the training ratings. The loss of a rating is half of its squared error;
/// its gradient also has `penalty` times the values of both rows.
std::unique_ptr<troupe::trainer> make_trainer(shared_ratings data, double penalty);

enum class split { train, test };
/// Returns an evaluator on these ratings, with the measure rmse.
std::unique_ptr<troupe::evaluator> make_evaluator(shared_ratings data, split which);

} // namespace factorisation
