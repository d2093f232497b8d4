// Defines every error that crosses an actor, a link or a file, and how its receiver reacts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace troupe {

/// The numbers are wire format: never reuse or renumber one, leave a "removed" note instead.
enum class errc : std::uint8_t {
  // 1-19: drop the message and go on.
  /// A value of a push is NaN or infinite; the text names worker, table and key.
  non_finite = 1,
  /// The sender was declared dead or evicted; a newer incarnation took its place.
  fenced = 2,
  /// The message belongs to a history that was rolled back.
  rolled_back = 3,
  /// Too much waits for a peer in this process; the message was not applied. Slow down, then retry.
  overloaded = 4,
  /// A push is the sum of several batches, of which some may not be applied here: they have been,
  /// or their worker is fenced. No batch was applied; push the batches one by one.
  sum_not_applicable = 5,
  // 20-39: try again later.
  /// The receiver does not yet hold the requested object: it restores, or was not told about it.
  not_ready = 20,
  /// A pull waits for pushes of other workers, which the text names; ask again.
  not_yet = 21,
  /// The connection to the peer ended, or its deadline passed.
  peer_lost = 22,
  /// No answer came in time.
  timed_out = 23,
  // 40-59: stop; the configuration or a file is wrong.
  /// A range lies outside its table, or the number of values differs from the range.
  shape_mismatch = 40,
  /// The peer speaks another protocol version.
  version_mismatch = 41,
  /// The peer, checkpoint or state directory belongs to another job or model.
  wrong_job = 42,
  /// The bytes violate their format.
  malformed = 43,
  /// A file is missing, unreadable, or not writable.
  io_failed = 44,
  /// A checksum does not match: the file was damaged.
  damaged = 45,
  /// Another process uses the directory or the port.
  in_use = 46,
  /// A value of an option or a specification cannot be used.
  invalid_argument = 47,
  // 48 removed: diverged.
  /// A certificate is missing or not accepted: the peer's here, or ours there.
  untrusted = 49,
  /// A GPU, its driver or its library is missing or failed; the text says which and how.
  device_failed = 50,
  /// A user's stage or store did what its contract forbids; the text names it and a batch.
  contract_broken = 51,
  /// A job ended without a result; the text has its cause, such as an exception of a trainer.
  job_failed = 52,
};

/// A receiver's reaction to an error. Retrying is safe only for messages documented `idempotent`.
enum class reaction { drop, retry, stop };

constexpr reaction reaction_to(errc code) {
  const auto number = static_cast<std::uint8_t>(code);
  return number < 20 ? reaction::drop : number < 40 ? reaction::retry : reaction::stop;
}

/// Returns the enumerator's own name.
const char* to_string(errc code);

/// One error: its code, and one line for a person: first the fault, last the values.
struct failure {
  errc code = errc::malformed;
  std::string text;

  bool operator==(const failure&) const = default;
};

/// Holds a T or the reason why it is missing.
template <class T>
class [[nodiscard]] result {
public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(failure why) : state_(std::in_place_index<1>, std::move(why)) {}
  result(errc code, std::string text) : result(failure{code, std::move(text)}) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const failure& error() const { return std::get<1>(state_); }

private:
  std::variant<T, failure> state_;
};

/// Holds success or the reason of the failure.
template <>
class [[nodiscard]] result<void> {
public:
  result() = default;
  result(failure why) : why_(std::move(why)) {}
  result(errc code, std::string text) : result(failure{code, std::move(text)}) {}

  explicit operator bool() const { return !why_; }
  const failure& error() const { return *why_; }

private:
  std::optional<failure> why_;
};

} // namespace troupe
