// Builds a Cap'n Proto message of exactly one segment behind a prefix.
#pragma once

#include <capnp/message.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::wire::detail {

/// The first segment lies in the vector that `finish()` returns. So a message that fits into the
/// guessed size is never copied; a larger one is copied once.
class segment_builder final : public capnp::MessageBuilder {
public:
  /// `prefix_bytes`: free space in front of the segment, a multiple of 8. `guessed_words`: > 0.
  segment_builder(std::size_t prefix_bytes, std::size_t guessed_words);
  ~segment_builder() noexcept(false) override = default;

  kj::ArrayPtr<capnp::word> allocateSegment(unsigned words_min) override;

  /// Returns prefix (zeros) and segment. The builder must not be used any more.
  template <class Root>
  std::vector<std::byte> finish() {
    if (further_.empty())
      return take();
    const auto root = getRoot<Root>().asReader();
    segment_builder whole{prefix_bytes_, root.totalSize().wordCount + 1};
    whole.setRoot(root);
    return whole.take();
  }

private:
  std::vector<std::byte> take();

  std::size_t prefix_bytes_;
  std::vector<std::byte> bytes_;
  bool first_given_ = false;
  std::vector<std::unique_ptr<std::uint64_t[]>> further_;
};

} // namespace troupe::wire::detail
