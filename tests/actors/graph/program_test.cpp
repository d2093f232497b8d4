#include "actors/graph/program.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <locale>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace program_test {

using namespace troupe;

/// Returns what `call` writes to standard error.
std::string errors_of(const std::function<void()>& call) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  REQUIRE(dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
  call();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text(4096, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

/// Runs a program whose graph is described by `describe` in a process of its own, as it installs
/// handlers. Returns its exit status and what it writes to standard error.
std::pair<int, std::string> run_alone(const std::function<graph(const run_options&)>& describe) {
  int status = 0;
  const auto text = errors_of([&] {
    const auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      char name[] = "tried";
      char* words[] = {name, nullptr};
      const int end = program{"tried", "A program that throws"}.run(1, words, describe);
      std::fflush(nullptr);
      _exit(end);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
  });
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

/// Runs a program that `declare` completed, and returns its line of error.
std::string refused(const std::function<void(program&)>& declare) {
  return errors_of([&] {
    program tried{"tried", "A program with a mistake"};
    declare(tried);
    char name[] = "tried";
    char* words[] = {name, nullptr};
    const auto nothing = [](const run_options&) {
      FAIL("the graph is described");
      return graph{};
    };
    CHECK(tried.run(1, words, nothing) == 2);
  });
}

TEST_CASE("a name that a program declares twice is refused before anything runs") {
  std::uint64_t count = 1;
  std::string text;
  bool flag = false;
  CHECK(refused([&](program& x) { x.option("--epochs", count, "Passes"); })
        == "tried: the program declares --epochs, which is an option already\n");
  CHECK(refused([&](program& x) {
          x.option("--shape", text, "A shape");
          x.flag("--shape", flag, "Whether there is a shape");
        })
        == "tried: the program declares --shape, which is an option already\n");
  CHECK(refused([&](program& x) {
          x.function("mean/1", {});
          x.function("mean/1", {});
        })
        == "tried: the program has two server functions 'mean/1'\n");
}

TEST_CASE("a default that the command line would refuse is refused") {
  std::uint64_t count = 0;
  double share = 2;
  CHECK(refused([&](program& x) { x.option("--count", count, "A count", 1, 9); })
        == "tried: the program's default of --count is 0, which is not from 1 to 9\n");
  CHECK(refused([&](program& x) { x.option("--share", share, "A share", 0, 1); })
        == "tried: the program's default of --share is 2, which is not from 0 to 1\n");
}

TEST_CASE("more options of its own than a job keeps are refused") {
  std::vector<std::string> values(own_options_max + 1);
  const auto line = refused([&](program& x) {
    for (std::size_t i = 0; i < values.size(); ++i)
      x.option("--own" + std::to_string(i), values[i], "A value");
  });
  CHECK(line
        == "tried: the program declares 257 options of its own, and a job keeps at most 256: put "
           "several values into one option\n");
}

TEST_CASE("a number that no double can hold is refused with its limit") {
  double share = 0.5;
  program tried{"tried", "A program with an option"};
  tried.option("--share", share, "A share", 0, 1);
  char name[] = "tried", option[] = "--share", value[] = "1e-400";
  char* words[] = {name, option, value, nullptr};
  const auto text =
    errors_of([&] { CHECK(tried.run(3, words, [](const run_options&) { return graph{}; }) == 2); });
  CHECK(text
        == "tried: --share: '1e-400' is too small for a number of 64 bits, whose least above 0 is "
           "2.3e-308 (see tried --help)\n");
}

TEST_CASE("a whole number has digits alone") {
  std::uint64_t count = 1;
  program tried{"tried", "A program with an option"};
  tried.option("--count", count, "A count");
  for (const std::string given :
       {"-1", "+1", "010", "0x10", "1.0", "nan", "18446744073709551616"}) {
    char name[] = "tried", option[] = "--count";
    std::string value = given;
    char* words[] = {name, option, value.data(), nullptr};
    CHECK(errors_of(
            [&] { CHECK(tried.run(3, words, [](const run_options&) { return graph{}; }) == 2); })
          == "tried: --count: '" + given
               + "' is not a number from 0 to 18446744073709551615 (see tried --help)\n");
  }
}

TEST_CASE("a name that no option can have is refused") {
  std::string text;
  CHECK(refused([&](program& x) { x.option("word", text, "A word"); })
        == "tried: the program declares the option word, which does not begin with --\n");
  CHECK(refused([&](program& x) { x.option("-word", text, "A word"); })
        == "tried: the program declares -word: Invalid one char name: -word\n");
}

TEST_CASE("an exception without a text is named by its type, in describe too") {
  using end = std::pair<int, std::string>;
  CHECK(run_alone([](const run_options&) -> graph { throw std::runtime_error{""}; })
        == end{1, "tried: std::runtime_error without a text\n"});
  CHECK(run_alone([](const run_options&) -> graph { throw std::invalid_argument{""}; })
        == end{2, "tried: std::invalid_argument without a text\n"});
  CHECK(run_alone([](const run_options&) -> graph { throw 42; })
        == end{1, "tried: the program threw a value of type int, which is no std::exception\n"});
}

TEST_CASE("a function of the command line that throws ends the program in one line") {
  const auto text = errors_of([] {
    program tried{"tried", "A program that throws"};
    tried.command_line().add_option_function<int>(
      "--own", [](int) { throw std::runtime_error{""}; }, "A number");
    char name[] = "tried", option[] = "--own", value[] = "5";
    char* words[] = {name, option, value, nullptr};
    const auto nothing = [](const run_options&) { return graph{}; };
    CHECK(tried.run(3, words, nothing) == 1);
  });
  CHECK(text == "tried: std::runtime_error without a text\n");
}

TEST_CASE("the help of an option of a program's own lists its choices") {
  std::string kind = "plain";
  program tried{"tried", "A program with options"};
  tried.option("--kind", kind, "A kind", {"plain", "other"});
  const auto help = tried.command_line().help();
  CHECK(help.find("A kind: plain, other\n") != std::string::npos);
}

TEST_CASE("the options of a program's own are known with their values, given or not") {
  std::string path, kind = "plain";
  std::uint64_t count = 7;
  double share = 0.5;
  bool flag = false;
  std::vector<int> list;
  std::vector<own_option> seen;
  const auto run = [&](std::vector<std::string> words) {
    program tried{"tried", "A program with options"};
    tried.option("--path", path, "A path");
    tried.option("--kind", kind, "A kind", {"plain", "other"});
    tried.option("--count,-c", count, "A count", 1, 9);
    tried.option("--share", share, "A share", 0, 1);
    tried.flag("--flag", flag, "A flag");
    tried.command_line().add_option("--list", list, "Numbers");
    words.insert(words.begin(), "tried");
    std::vector<char*> argv;
    for (auto& word : words)
      argv.push_back(word.data());
    (void)errors_of([&] {
      CHECK(tried.run(static_cast<int>(argv.size()), argv.data(),
                      [&](const run_options& options) -> graph {
                        seen = options.own;
                        throw std::invalid_argument{"enough"};
                      })
            == 2);
    });
  };
  using options = std::vector<own_option>;
  run({});
  CHECK(seen
        == options{{"--path", ""},
                   {"--kind", "plain"},
                   {"--count", "7"},
                   {"--share", "0.5"},
                   {"--flag", "false"},
                   {"--list", ""}});
  run({"--share", "0.250", "--path", "caf\xe9", "-c", "9", "--flag", "--list", "1", "2", "--epochs",
       "3"});
  CHECK(seen
        == options{{"--path", "caf\\xe9"},
                   {"--kind", "plain"},
                   {"--count", "9"},
                   {"--share", "0.25"},
                   {"--flag", "true"},
                   {"--list", "1,2"}});
  run({"--path", std::string(5000, 'x') + "a"});
  const auto long_value = seen.at(0).value;
  CHECK(long_value.size() < 300);
  run({"--path", std::string(5000, 'x') + "b"});
  CHECK(seen.at(0).value.size() == long_value.size());
  CHECK(seen.at(0).value != long_value); // The checksum differs.
}

namespace {

/// Sets locales in which 0.5 is written 0,5, and 1000 is written 1.000.
struct with_commas {
  struct commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  with_commas() : streams(std::locale::global(std::locale{std::locale::classic(), new commas})) {
    const auto make = "localedef -i de_DE -f UTF-8 " + (folder.path() / "de_DE").string();
    if (std::system((make + " > /dev/null 2>&1").c_str()) == 0) {
      setenv("LOCPATH", folder.path().c_str(), 1);
      is_there = setlocale(LC_ALL, "de_DE") != nullptr;
    }
  }
  ~with_commas() {
    std::locale::global(streams);
    setlocale(LC_ALL, before.c_str());
    unsetenv("LOCPATH"); // Not before: the C library reads the file again at each setlocale().
  }

  storage::temporary_directory folder;
  std::string before = setlocale(LC_ALL, nullptr);
  std::locale streams;
  bool is_there = false;
};

} // namespace

TEST_CASE("numbers of a command line are read and shown whatever the program's locale") {
  const with_commas locale;
  if (!locale.is_there) {
    MESSAGE("SKIPPED: localedef cannot make the locale de_DE");
    return;
  }
  REQUIRE(std::strtod("0,5", nullptr) == 0.5);
  const std::string name = setlocale(LC_ALL, nullptr);
  double share = 0.125, factor = 1.5;
  run_options given;
  const auto describe = [&](const run_options& options) -> graph {
    given = options;
    CHECK(std::strtod("0,5", nullptr) == 0.5); // User code has its locale.
    throw std::invalid_argument{"seen"};
  };
  program tried{"tried", "A program in another locale"};
  tried.option("--share", share, "A share", 0, 1);
  tried.command_line().add_option("--factor", factor, "A factor");
  std::vector<std::string> words{"tried", "--lr", "0.25", "--share", "0.75", "--factor", "2.5"};
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  CHECK(errors_of([&] {
          CHECK(tried.run(static_cast<int>(arguments.size()), arguments.data(), describe) == 2);
        })
        == "tried: seen\n");
  CHECK(given.optimizer.learning_rate == 0.25f);
  CHECK(share == 0.75);
  CHECK(factor == 2.5);
  CHECK(std::string{setlocale(LC_ALL, nullptr)} == name);
  const auto help = tried.command_line().help();
  CHECK(help.find("0.125") != std::string::npos);
  CHECK(help.find("0,125") == std::string::npos);
}

} // namespace program_test
