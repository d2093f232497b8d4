// Notices that a model has diverged: gradients that are not finite, one after the other.
#pragma once

#include <string>

namespace troupe {

class divergence {
public:
  /// Of the next gradient. True: so many in a row are not finite that the model has diverged.
  bool after(bool is_finite) {
    in_row_ = is_finite ? 0 : in_row_ + 1;
    return in_row_ >= in_row_max;
  }
  static std::string text() {
    return "training diverged: " + std::to_string(in_row_max)
           + " gradients in a row are not finite; a smaller --lr may help";
  }

private:
  static constexpr int in_row_max = 20;
  int in_row_ = 0;
};

} // namespace troupe
