// Computes the checksum that tells one data set from another.
#include "examples/02_async_sgd/data/dataset.hpp"

#include "fmt/core.h"

#include <xxhash.h>

#include <memory>
#include <new>
#include <span>

namespace async_sgd {

namespace {

/// XXH3 of 64 bits, fed piece by piece.
class data_hash {
public:
  data_hash() : state_(XXH3_createState()) {
    if (!state_)
      throw std::bad_alloc{};
    XXH3_64bits_reset(state_.get());
  }

  /// Adds the number of values first, so that moving a value to the next array changes the sum.
  template <class T>
  void add(std::span<const T> values) {
    const std::uint64_t count = values.size();
    XXH3_64bits_update(state_.get(), &count, sizeof count);
    XXH3_64bits_update(state_.get(), values.data(), values.size_bytes());
  }

  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

private:
  struct deleter {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  std::unique_ptr<XXH3_state_t, deleter> state_;
};

void add_samples(const samples& from, std::uint32_t features, data_hash& to) {
  const std::uint64_t kind = from.rows.index();
  to.add(std::span{&kind, 1});
  to.add(std::span{from.labels});
  if (const auto* bytes = std::get_if<byte_rows>(&from.rows)) {
    to.add(std::span<const std::uint8_t>{bytes->values.get(), from.labels.size() * features});
  } else if (const auto* floats = std::get_if<float_rows>(&from.rows)) {
    to.add(std::span{floats->values});
  } else if (const auto* sparse = std::get_if<sparse_rows>(&from.rows)) {
    to.add(std::span{sparse->first});
    to.add(std::span{sparse->columns});
    to.add(std::span{sparse->values});
  } // Drawn digits follow from their labels and the program.
}

} // namespace

std::string checksum_of(const dataset& data) {
  data_hash hash;
  const std::uint32_t sizes[] = {data.features, data.classes};
  hash.add(std::span<const std::uint32_t>{sizes});
  add_samples(data.train, data.features, hash);
  add_samples(data.test, data.features, hash);
  return fmt::format("{:016x}", hash.value());
}

} // namespace async_sgd
