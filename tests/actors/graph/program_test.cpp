#include "actors/graph/program.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <unistd.h>

#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <locale>
#include <stdexcept>
#include <string>
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

TEST_CASE("a name that no option can have is refused") {
  std::string text;
  CHECK(refused([&](program& x) { x.option("word", text, "A word"); })
        == "tried: the program declares the option word, which does not begin with --\n");
  CHECK(refused([&](program& x) { x.option("-word", text, "A word"); })
        == "tried: the program declares -word: Invalid one char name: -word\n");
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
      unsetenv("LOCPATH");
    }
  }
  ~with_commas() {
    std::locale::global(streams);
    setlocale(LC_ALL, before.c_str());
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
