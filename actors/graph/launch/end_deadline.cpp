#include "actors/graph/launch/end_deadline.hpp"

namespace troupe {

void end_deadline::signalled(int count, int number, time_point now) {
  if (count > 0 && !first_at_)
    first_at_ = now;
  if (count > 1 && !second_at_)
    second_at_ = now;
  number_ = number;
}

void end_deadline::over(int status, time_point now) { result_ = {status, now}; }

std::optional<int> end_deadline::look(bool calls_open, time_point now) const {
  const bool is_due = (first_at_ && (!is_run_ || now - *first_at_ >= after_signal))
                      || (second_at_ && now - *second_at_ >= after_second)
                      || (result_ && calls_open && now - result_->at >= after_result);
  if (!is_due)
    return std::nullopt;
  return result_ ? result_->status : 128 + number_;
}

} // namespace troupe
