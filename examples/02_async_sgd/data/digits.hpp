// Draws a data set that needs no files: images of handwritten-looking digits, 28 x 28 bytes, with
// jittered strokes. Image i is a pure function of i, so a process draws only the images that it
// uses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace async_sgd {

constexpr std::uint32_t digit_side = 28;
constexpr std::uint32_t digit_pixels = digit_side * digit_side;
constexpr std::uint64_t digits_train = 60'000;
constexpr std::uint64_t digits_test = 10'000;

using digit_image = std::span<std::uint8_t, digit_pixels>;

/// Returns the digit that image `i` shows. Ten neighbouring images show ten digits.
constexpr std::uint32_t digit_label(std::uint64_t i) { return static_cast<std::uint32_t>(i % 10); }

/// Draws image `i`.
/// Determinism: the same bytes on every machine, unless compiled with fused multiply-add.
/// Cost: about 4 us.
void draw_digit(std::uint64_t i, digit_image image);

/// Keeps images [first, first + count); each is drawn at its first use.
/// Thread safety: any number of threads may call at().
class digit_cache {
public:
  digit_cache(std::uint64_t first, std::uint64_t count);

  /// Returns the pixels of image first + `i`. They lie in `scratch` if another thread is just
  /// drawing the image. Borrowed: valid as long as both the cache and `scratch`.
  std::span<const std::uint8_t, digit_pixels> at(std::uint64_t i, digit_image scratch) const;

private:
  enum state : std::uint8_t { empty, busy, ready };

  std::uint64_t first_;
  std::unique_ptr<std::uint8_t[]> pixels_; ///< The thread that sets an image busy writes it.
  std::unique_ptr<std::atomic<state>[]> states_;
};

} // namespace async_sgd
