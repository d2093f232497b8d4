// Remembers which code of the program Troupe calls at the moment, so that a line can name a call
// that does not return or that ends the process.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Names code of the program: {"trainer", {}, "worker 1"}, {"stage", "privacy"}.
struct code_name {
  std::string_view what;
  std::string_view name = {};  ///< The name of the node or function; may be empty.
  std::string_view whose = {}; ///< The member that calls it; may be empty.
};

/// Returns the parts of its text, which follow each other without spaces. Async-signal-safe.
std::array<std::string_view, 6> parts_of(const code_name& which);
/// Returns "worker 1's trainer", "stage 'privacy'".
std::string to_string(const code_name& which);

/// Marks a call of the program's code by this thread. A call may lie within another one.
/// Cost: two uncontended locks.
class user_call {
public:
  /// The texts of `which` must outlive this object.
  explicit user_call(const code_name& which);
  ~user_call();
  user_call(const user_call&) = delete;
  user_call& operator=(const user_call&) = delete;

private:
  code_name around_;            ///< The call around this one.
  std::uint64_t around_number_; ///< 0: there is none.
};

/// A call of the program's code that has not returned.
struct open_call {
  std::uint64_t number = 0; ///< Differs from that of each other call of this process.
  std::string name;

  bool operator==(const open_call&) const = default;
};

/// Returns the innermost open call of each thread of this process.
std::vector<open_call> open_calls();

/// Returns the call that this thread is in. Async-signal-safe.
std::optional<code_name> current_code();
/// Returns its name. It may be used while the process exits.
std::optional<std::string> current_call();

} // namespace troupe
