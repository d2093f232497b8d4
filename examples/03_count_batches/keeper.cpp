#include "examples/03_count_batches/keeper.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace count_batches {

namespace {

class summing_keeper : public troupe::keeper {
public:
  explicit summing_keeper(std::size_t elements) : sums_(elements) {}

  void apply(const troupe::update& what, const troupe::node_notes& notes) override {
    notes.count("batches", what.batches);
    for (std::size_t i = 0; i < what.gradients[0].size(); ++i)
      sums_[i] -= what.gradients[0][i];
  }

  void read(const troupe::query&, troupe::mutable_tensors values) override {
    std::copy_n(sums_.begin(), values[0].size(), values[0].begin());
  }

  std::vector<std::byte> save() const override {
    const auto bytes = std::as_bytes(std::span{sums_});
    return {bytes.begin(), bytes.end()};
  }

  void load(std::span<const std::byte> saved) override {
    const auto bytes = std::as_writable_bytes(std::span{sums_});
    if (saved.size() != bytes.size())
      throw std::runtime_error{"the checkpoint has another number of sums"};
    std::memcpy(bytes.data(), saved.data(), saved.size());
  }

private:
  std::vector<float> sums_;
};

class forgetful_keeper final : public summing_keeper {
public:
  using summing_keeper::summing_keeper;

  void load(std::span<const std::byte>) override {
    throw std::runtime_error{"it loads no checkpoint, on purpose"};
  }
};

} // namespace

std::unique_ptr<troupe::keeper> make_keeper(std::size_t elements) {
  return std::make_unique<summing_keeper>(elements);
}

std::unique_ptr<troupe::keeper> make_forgetful_keeper(std::size_t elements) {
  return std::make_unique<forgetful_keeper>(elements);
}

} // namespace count_batches
