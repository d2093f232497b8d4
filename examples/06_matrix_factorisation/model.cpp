#include "examples/06_matrix_factorisation/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace factorisation {

namespace {

/// Returns the row of a key, among rows in ascending order of their keys.
template <class Float>
std::span<Float> row_of(std::span<Float> rows, std::span<const std::uint64_t> keys,
                        std::uint64_t key) {
  const auto width = rows.size() / keys.size();
  const auto index = std::ranges::lower_bound(keys, key) - keys.begin();
  return rows.subspan(static_cast<std::size_t>(index) * width, width);
}

float predicted(float mean, std::span<const float> user, std::span<const float> item) {
  float sum = mean + user[0] + item[0];
  for (std::size_t k = 1; k < user.size(); ++k)
    sum += user[k] * item[k];
  return sum;
}

struct factor_trainer final : troupe::trainer {
  factor_trainer(shared_ratings data, double penalty)
      : all(std::move(data)), decay(static_cast<float>(penalty)) {}

  void keys(const troupe::batch& work, troupe::key_lists touched) override {
    for (const auto sample : work.samples) {
      touched[0].push_back(all->train[sample].user);
      touched[1].push_back(all->train[sample].item);
    }
  }

  double gradient(const troupe::batch& work, troupe::const_tensors rows,
                  troupe::mutable_tensors gradients) override {
    double loss = 0;
    const auto share = 1.0f / static_cast<float>(work.samples.size());
    for (const auto table : gradients)
      std::ranges::fill(table, 0.0f);
    for (const auto sample : work.samples) {
      const rating& x = all->train[sample];
      const auto user = row_of(rows[0], work.keys[0], x.user);
      const auto item = row_of(rows[1], work.keys[1], x.item);
      const auto along_user = row_of(gradients[0], work.keys[0], x.user);
      const auto along_item = row_of(gradients[1], work.keys[1], x.item);
      const float error = predicted(all->mean, user, item) - x.value;
      loss += double{error} * error / 2 * share;
      for (std::size_t k = 0; k < user.size(); ++k) {
        along_user[k] += share * (error * (k == 0 ? 1.0f : item[k]) + decay * user[k]);
        along_item[k] += share * (error * (k == 0 ? 1.0f : user[k]) + decay * item[k]);
      }
    }
    return loss;
  }

  shared_ratings all;
  float decay;
};

struct factor_evaluator final : troupe::evaluator {
  factor_evaluator(shared_ratings data, split which)
      : all(std::move(data)), mine(which == split::train ? all->train : all->test) {
    for (const auto& x : mine) {
      users.push_back(x.user);
      items.push_back(x.item);
    }
    for (auto* const keys : {&users, &items}) {
      std::ranges::sort(*keys);
      keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
    }
  }

  void keys(troupe::key_lists touched) override {
    touched[0] = users;
    touched[1] = items;
  }

  troupe::evaluation evaluate(troupe::const_tensors rows) override {
    double squares = 0;
    for (const rating& x : mine) {
      const double error =
        predicted(all->mean, row_of(rows[0], {users}, x.user), row_of(rows[1], {items}, x.item))
        - x.value;
      squares += error * error;
    }
    const double mean = squares / static_cast<double>(mine.size());
    return {.loss = mean / 2, .measures = {{"rmse", std::sqrt(mean)}}};
  }

  shared_ratings all;
  const std::vector<rating>& mine;
  std::vector<std::uint64_t> users, items;
};

} // namespace

std::vector<troupe::table_spec> tables(std::uint32_t factors) {
  troupe::table_spec users{
    .name = "users",
    .shape = {},
    .init = {troupe::initializer_kind::normal, 0.1f, 1}, // The bias begins as 0.
    .kind = troupe::table_kind::sparse,
    .width = factors + 1};
  auto items = users;
  items.name = "items";
  return {users, items};
}

std::unique_ptr<troupe::trainer> make_trainer(shared_ratings data, double penalty) {
  return std::make_unique<factor_trainer>(std::move(data), penalty);
}

std::unique_ptr<troupe::evaluator> make_evaluator(shared_ratings data, split which) {
  return std::make_unique<factor_evaluator>(std::move(data), which);
}

} // namespace factorisation
