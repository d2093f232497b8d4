#include "base/user_code.hpp"

#include <atomic>
#include <list>
#include <mutex>

namespace troupe {

namespace {

/// Numbers of calls begin with the number of their thread's place.
constexpr unsigned calls_bits = 40;

/// The innermost call of one thread.
struct call_place {
  std::mutex mutex;
  code_name which;
  std::uint64_t number = 0; ///< 0: there is no call.
  std::uint64_t last = 0;   ///< The number of the latest call.
  bool is_free = false;     ///< Its thread has ended.

  /// Takes another call. A handler of a signal of this thread finds a whole name or none.
  void name(const code_name& call, std::uint64_t its_number) {
    number = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    which = call;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    number = its_number;
  }
};

struct call_places {
  std::mutex mutex;
  std::list<call_place> all;
};

/// The places are never destroyed: threads may make calls while the process exits.
call_places& places() {
  static auto& all = *new call_places;
  return all;
}

/// Without a destructor, so that it is still valid in a handler of exit().
thread_local call_place* own_place = nullptr;

/// Gives the place to a later thread when this one ends. A thread that calls exit() within the
/// program's code keeps its place.
struct place_return {
  ~place_return() {
    const std::lock_guard lock{places().mutex};
    if (own_place != nullptr && own_place->number == 0)
      own_place->is_free = true;
  }
};

call_place& place_of_thread() {
  if (own_place != nullptr)
    return *own_place;
  static thread_local place_return returned;
  auto& [mutex, all] = places();
  const std::lock_guard lock{mutex};
  for (auto& place : all)
    if (place.is_free) {
      place.is_free = false;
      own_place = &place;
      return place;
    }
  own_place = &all.emplace_back();
  own_place->last = std::uint64_t{all.size()} << calls_bits;
  return *own_place;
}

} // namespace

std::array<std::string_view, 6> parts_of(const code_name& which) {
  const auto unless_empty = [](std::string_view text, std::string_view beside) {
    return text.empty() ? text : beside;
  };
  return {which.whose, unless_empty(which.whose, "'s "), which.what, unless_empty(which.name, " '"),
          which.name,  unless_empty(which.name, "'")};
}

std::string to_string(const code_name& which) {
  std::string text;
  for (const auto part : parts_of(which))
    text.append(part);
  return text;
}

user_call::user_call(const code_name& which) {
  auto& place = place_of_thread();
  const std::lock_guard lock{place.mutex};
  around_ = place.which;
  around_number_ = place.number;
  place.name(which, ++place.last);
}

user_call::~user_call() {
  auto& place = place_of_thread();
  const std::lock_guard lock{place.mutex};
  place.name(around_, around_number_);
}

std::vector<open_call> open_calls() {
  std::vector<open_call> open;
  auto& [mutex, all] = places();
  const std::lock_guard lock{mutex};
  for (auto& place : all) {
    const std::lock_guard own{place.mutex};
    if (place.number != 0)
      open.push_back({place.number, to_string(place.which)});
  }
  return open;
}

std::optional<code_name> current_code() {
  if (own_place == nullptr || own_place->number == 0) // This thread alone writes to its place.
    return std::nullopt;
  return own_place->which;
}

std::optional<std::string> current_call() {
  const auto code = current_code();
  return code ? std::optional{to_string(*code)} : std::nullopt;
}

} // namespace troupe
