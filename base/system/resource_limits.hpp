// Reports the system's limits on this process; ends it when memory or threads run out.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace troupe {

enum class resource {
  memory,
  threads,
  files,
  file_size,
  stack,
  processor_time,
  memory_or_threads,
};

/// Returns the finite limits on `what`, such as "ulimit -u 40, cgroup's pids.max 100"; empty if
/// there are none.
std::string limits_on(resource what);

/// Returns "; limits: ulimit -n 16"; empty if there is no finite limit on `what`.
std::string limits_suffix(resource what);

/// Adds the limits to a message that ends with the system's text of an error that they cause, such
/// as "Too many open files".
std::string with_limits(const std::string& text);

/// Lets this process and its children open `count` files each: raises the limit as far as the user
/// may. Errors: io_failed, if that is not far enough.
result<void> allow_open_files(std::uint64_t count);

/// Gives other threads a stack of the usual size if the limit is lower. Errors: io_failed, if the
/// main thread has less than 256 KiB.
result<void> prepare_stacks();

/// Returns how many processes the system killed for lack of memory. Counts in this process's
/// control group; if that has no count, since the machine started; 0 if neither is readable.
std::uint64_t out_of_memory_kills();

/// Writes one line about the end of the process, for a person.
using last_line_writer = std::function<void(const std::string& why)>;

/// From now on the process ends at once, with `status`, if memory cannot be allocated or a thread
/// cannot start. A lack of threads is noticed in starting_threads(), or when its exception is not
/// caught. `write` gets one line that names the limits. After any other exception that is not
/// caught, `write` gets its text, and the process aborts.
///
/// A process that went on without its memory or threads would leave others waiting. Code that could
/// do with less memory ends too: it does not see the exception.
///
/// A file beyond the limit on its size becomes an error of the write, not a signal. Used-up
/// processor time ends the process with a line on standard error.
void end_where_resources_lack(last_line_writer write, int status);

/// From now on a line follows a library's own line before the process aborts. It names the call of
/// the program's code that aborts, and limits on memory or threads; without both there is no line.
/// The process still dies by SIGABRT.
void name_causes_of_abort();

/// Ends the process as end_where_resources_lack() says. Throws `why`, with a better text, if that
/// was not called.
[[noreturn]] void end_without_thread(const std::system_error& why);

/// Returns call(), which starts threads. Calls end_without_thread() if the system refuses one.
template <class Call>
auto starting_threads(Call call) {
  try {
    return call();
  } catch (const std::system_error& why) {
    if (why.code() != std::errc::resource_unavailable_try_again)
      throw;
    end_without_thread(why);
  }
}

namespace detail {
void call_without_unwinding(std::function<void()> call);
}

/// Returns call(), which starts threads in a library that does not survive it if the system refuses
/// one: the destructors that unwinding runs wait for ever. So the call runs on a thread of its own,
/// where no function catches an exception. The terminate handler runs before any destructor: it
/// hands the exception over, and its thread waits until the process ends. Calls
/// end_without_thread() if the system refused a thread; throws any other exception again.
///
/// Objects that the call has made by then stay. So `call` must own what a thread of the library may
/// use. The terminate handler stays as well, and calls the one that it found.
template <class Call>
auto without_unwinding(Call call) {
  std::optional<std::invoke_result_t<Call>> returned;
  detail::call_without_unwinding(
    [&returned, call = std::move(call)]() mutable { returned.emplace(call()); });
  return *std::move(returned);
}

} // namespace troupe
