// Detects that a model has diverged: too many gradients in a row are not finite.
#pragma once

#include <string>

namespace troupe {

class divergence {
public:
  /// Takes the next gradient. Returns true if in_row_max gradients in a row are not finite.
  bool after(bool is_finite) {
    in_row_ = is_finite ? 0 : in_row_ + 1;
    return in_row_ >= in_row_max;
  }
  /// Returns whether one gradient more was not finite.
  bool is_beyond() const { return in_row_ > in_row_max; }
  static std::string text() {
    return "training diverged: " + std::to_string(in_row_max)
           + " gradients in a row are not finite; a smaller --lr may help";
  }

private:
  static constexpr int in_row_max = 20;
  int in_row_ = 0;
};

} // namespace troupe
