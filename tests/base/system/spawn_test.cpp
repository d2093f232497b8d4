#include "base/system/spawn.hpp"

#include "base/system/descriptor.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace troupe::spawn_test {

namespace {

struct pipe_ends {
  pipe_ends() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reader = descriptor{ends[0]};
    writer = descriptor{ends[1]};
  }

  descriptor reader, writer;
};

struct outcome {
  int status = 0;
  std::string said;
};

outcome run(const std::string& executable, const std::vector<std::string>& words,
            spawn_options how = {}) {
  pipe_ends output;
  how.output = output.writer.get();
  const auto pid = spawn(executable, words, how);
  REQUIRE(pid);
  output.writer.reset();
  outcome made;
  char some[256];
  for (ssize_t got = 0; (got = ::read(output.reader.get(), some, sizeof some)) > 0;)
    made.said.append(some, static_cast<std::size_t>(got));
  REQUIRE(::waitpid(*pid, &made.status, 0) == *pid);
  return made;
}

} // namespace

TEST_CASE("a child writes both outputs where it is told and reads nothing") {
  const auto made = run("sh", {"name", "-c", "echo $0; echo problem >&2; cat; exit 3"});
  CHECK(made.said == "name\nproblem\n"); // In sh -c, $0 is the name of the program.
  CHECK(WEXITSTATUS(made.status) == 3);
}

TEST_CASE("a child reads its input and inherits only what is kept") {
  pipe_ends input, kept, other;
  REQUIRE(::write(input.writer.get(), "word\n", 5) == 5);
  input.writer.reset();
  const auto is_open = [](const descriptor& x) {
    const auto place = "/proc/self/fd/" + std::to_string(x.get());
    return "test -e " + place + " && echo open || echo closed;";
  };
  const auto made =
    run("/bin/sh", {"sh", "-c", "cat;" + is_open(kept.writer) + is_open(other.writer)},
        {.input = input.reader.get(), .kept = {-1, kept.writer.get()}});
  CHECK(made.said == "word\nopen\nclosed\n");
}

TEST_CASE("a stubborn child blocks the signals of a terminal and ignores none") {
  const std::string script = "kill -INT $$; kill -TERM $$; kill -HUP $$; echo lives";
  CHECK(run("sh", {"sh", "-c", script}, {.stubborn = true}).said == "lives\n");
  CHECK(run("grep", {"grep", "SigIgn", "/proc/self/status"}, {.stubborn = true}).said
        == run("grep", {"grep", "SigIgn", "/proc/self/status"}).said);
  CHECK(WTERMSIG(run("sh", {"sh", "-c", script}).status) == SIGINT);
}

TEST_CASE("a program that cannot be started is named with the reason") {
  for (const std::string name : {"/nowhere/at/all", "troupe-nowhere"})
    CHECK(spawn(name, {name}, {}).error()
          == failure{errc::io_failed,
                     "cannot start a process: " + name + ": No such file or directory"});
}

} // namespace troupe::spawn_test
