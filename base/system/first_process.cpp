#include "base/system/first_process.hpp"

#include "base/system/own_executable.hpp"
#include "base/system/spawn.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace troupe {

namespace {

/// Collects ended processes. Ends this process if the program is among them.
void collect(pid_t program) {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
    if (ended == program)
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/// Returns whether the program has got the signal, too: a terminal sends the signals of its keys to
/// the whole foreground group.
bool is_of_a_key(const siginfo_t& what) {
  return what.si_code == SI_KERNEL
         && (what.si_signo == SIGINT || what.si_signo == SIGQUIT || what.si_signo == SIGTSTP);
}

} // namespace

void play_process_1(int argument_count, char** arguments) {
  signal(SIGCHLD, SIG_DFL); // If it was ignored, the system would hide the ends of children.
  // A blocked signal waits for sigwaitinfo(). Faults of this process itself cannot be passed on.
  sigset_t passed;
  sigfillset(&passed);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&passed, fault);
  sigprocmask(SIG_SETMASK, &passed, nullptr);
  const auto program =
    spawn(own_executable(), {arguments, arguments + argument_count},
          {.input = STDIN_FILENO, .output = STDOUT_FILENO, .error = STDERR_FILENO});
  if (!program) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, program.error().text.c_str());
    _exit(EXIT_FAILURE);
  }
  for (;;) {
    siginfo_t what{};
    const int number = sigwaitinfo(&passed, &what);
    if (number == SIGCHLD)
      collect(*program);
    else if (number > 0 && !is_of_a_key(what))
      kill(*program, number);
  }
}

} // namespace troupe
