#include "examples/03_count_batches/keeper.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>
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

class bad_keeper final : public summing_keeper {
public:
  bad_keeper(std::size_t elements, std::string mistake)
      : summing_keeper(elements), mistake_(std::move(mistake)) {}

  void apply(const troupe::update& what, const troupe::node_notes& notes) override {
    if (mistake_ == "bad-apply" && ++updates_ == 40)
      throw std::runtime_error{"it applies no 40th push, on purpose"};
    summing_keeper::apply(what, notes);
  }
  std::vector<std::byte> save() const override {
    if (mistake_ == "bad-save")
      throw std::runtime_error{"it saves nothing, on purpose"};
    return summing_keeper::save();
  }
  void load(std::span<const std::byte> saved) override {
    if (mistake_ == "bad-load")
      throw std::runtime_error{"it loads no checkpoint, on purpose"};
    summing_keeper::load(saved);
  }

private:
  std::string mistake_;
  int updates_ = 0;
};

} // namespace

std::unique_ptr<troupe::keeper> make_keeper(std::size_t elements) {
  return std::make_unique<summing_keeper>(elements);
}

std::unique_ptr<troupe::keeper> make_bad_keeper(std::size_t elements, std::string mistake) {
  return std::make_unique<bad_keeper>(elements, std::move(mistake));
}

} // namespace count_batches
