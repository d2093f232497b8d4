#include "tests/misbehave/acts.hpp"

#undef NDEBUG
#include <cassert>

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

namespace misbehave {

namespace {

[[noreturn]] void never_return() {
  for (;;)
    std::this_thread::sleep_for(std::chrono::hours{1});
}

void fail_assert() {
  const bool is_right = false;
  assert(is_right && "made to fail");
}

void write_to_null() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

/// Needs more stack than any thread has.
int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == 1'000'000'000 ? 0 : overflow(depth + 1) + frame[0];
}

void write_lines(std::FILE* to) {
  std::fputs("a line of user code\nhalf a line", to);
  std::fflush(to);
}

/// Writes 2 GB of lines.
void flood() {
  const std::string line(1023, 'x');
  for (int i = 0; i < 2 << 20; ++i)
    std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct throws_at_its_end {
  ~throws_at_its_end() noexcept(false) { throw std::runtime_error{"made to fail"}; }
};

std::jmp_buf mark;
[[gnu::noinline]] void set_mark() {
  if (setjmp(mark) != 0)
    std::_Exit(9); // The frame is gone, so it is not reached.
}

/// Returns the output of a shell command, and its status.
std::string output_of(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr)
    throw std::runtime_error{"no popen"};
  char some[4096] = {};
  const auto got = std::fread(some, 1, sizeof some - 1, pipe);
  // The child has ended by then. Process 1 must leave its status to pclose().
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  const int status = pclose(pipe);
  return std::string{some, got} + "status " + std::to_string(status);
}

/// Starts one process that outlives this one.
void start_a_child() {
  static bool is_started = false;
  if (!std::exchange(is_started, true) && fork() == 0) {
    execlp("sleep", "sleep", "20", nullptr);
    _exit(127);
  }
}

/// Interrupts system calls every 10 ms, as a profiler does.
void start_timer() {
  struct sigaction counting {};
  counting.sa_handler = [](int) {};
  sigaction(SIGALRM, &counting, nullptr);
  const itimerval each_10_ms{{0, 10'000}, {0, 10'000}};
  setitimer(ITIMER_REAL, &each_10_ms, nullptr);
}

void close_all() {
  for (int i = 0; i < 256; ++i)
    close(i);
}

using act_function = std::function<bool()>;

/// Returns a function that goes on after `mistake`.
act_function then_go_on(std::function<void()> mistake) {
  return [mistake = std::move(mistake)] {
    mistake();
    return false;
  };
}

/// Returns a function that throws.
template <class Made>
act_function throwing(Made thrown) {
  return [thrown]() -> bool { throw thrown; };
}

const std::map<std::string, act_function>& all_acts() {
  static const std::map<std::string, act_function> all{
    {"nothing", [] { return false; }},
    {"throw", throwing(std::runtime_error{"made to fail"})},
    {"throw-empty", throwing(std::runtime_error{""})},
    {"throw-42", throwing(42)},
    {"throw-long", throwing(std::runtime_error{std::string(100'000, 'x') + " the end"})},
    {"throw-lines", throwing(std::runtime_error{"line 1\nline 2\r\n\tline \033[31m3\x01\xff\n"})},
    {"throw-in-destructor", then_go_on([] { const throws_at_its_end made; })},
    {"throw-in-thread",
     then_go_on([] { std::thread{[] { throw std::runtime_error{"made to fail"}; }}.join(); })},
    {"nan", [] { return true; }},
    {"never", then_go_on(never_return)},
    {"exit-0", then_go_on([] { std::exit(0); })},
    {"exit-3", then_go_on([] { std::exit(3); })},
    {"exit-4", then_go_on([] { std::exit(4); })},
    {"quick-exit-0", then_go_on([] { std::quick_exit(0); })},
    {"_exit-0", then_go_on([] { _exit(0); })},
    {"abort", then_go_on([] { std::abort(); })},
    {"assert", then_go_on(fail_assert)},
    {"segv", then_go_on(write_to_null)},
    {"kill", then_go_on([] { std::raise(SIGKILL); })},
    {"stack-overflow", then_go_on([] { overflow(0); })},
    {"stdout", then_go_on([] { write_lines(stdout); })},
    {"stderr", then_go_on([] { write_lines(stderr); })},
    {"flood", then_go_on(flood)},
    {"longjmp", then_go_on([] {
       set_mark();
       std::longjmp(mark, 1);
     })},
    {"fork", then_go_on(start_a_child)},
    {"child", []() -> bool { throw std::runtime_error{signals_of_a_child()}; }},
    {"close-all", then_go_on(close_all)},
    {"timer", then_go_on(start_timer)},
    {"ignore-sigterm", then_go_on([] { std::signal(SIGTERM, SIG_IGN); })},
    {"take-sigterm", then_go_on([] { std::signal(SIGTERM, [](int) {}); })},
    {"ignore-sigchld", then_go_on([] { std::signal(SIGCHLD, SIG_IGN); })},
    {"wait-for-all", then_go_on([] {
       while (wait(nullptr) > 0)
         ;
     })},
    {"raise-sigterm", then_go_on([] { std::raise(SIGTERM); })},
  };
  return all;
}

} // namespace

std::vector<std::string> acts() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : all_acts())
    names.push_back(name);
  return names;
}

std::string signals_of_a_child() {
  return output_of("grep -E '^Sig(Blk|Ign)' /proc/self/status; "
                   "sh -c 'kill -TERM $$; echo lives'; true");
}

bool act(const std::string& how) { return all_acts().at(how)(); }

} // namespace misbehave
