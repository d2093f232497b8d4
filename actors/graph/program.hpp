// Runs a program of Troupe: a user's main is a graph and a call of run().
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"
#include "actors/tables/server_functions.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace troupe {

struct field;

/// A program with its command line.
/// ~~~
/// troupe::program program{"async_sgd", "Trains a classifier."};
/// program.option("--data", data, "What to train on");
/// return program.run(argc, argv, [&](const troupe::run_options& options) {
///   troupe::graph g;
///   ...
///   return g;
/// });
/// ~~~
class program {
public:
  program(std::string name, std::string description);
  /// `defaults`: the values of options that the command line does not have; --help shows them.
  program(std::string name, std::string description, const run_options& defaults);
  ~program();

  /// Declares an option of the program's own; `value` now is its default. The options of run() are
  /// declared already (options.hpp), and run() refuses a name that is declared twice. Borrowed:
  /// `value`, until run() returns.
  void option(const std::string& name, std::string& value, const std::string& help);
  /// Declares an option with a whole number from `least` to `greatest`.
  void option(const std::string& name, std::uint64_t& value, const std::string& help,
              std::uint64_t least = 0, std::uint64_t greatest = ~std::uint64_t{0});
  /// Declares an option with a number from `least` to `greatest`.
  void option(const std::string& name, double& value, const std::string& help, double least,
              double greatest);
  /// Declares an option whose value is one of `choices`, which --help lists behind `help`.
  void option(const std::string& name, std::string& value, const std::string& help,
              const std::vector<std::string>& choices);
  /// Declares an option without a value, which sets `value`.
  void flag(const std::string& name, bool& value, const std::string& help);
  /// Adds a server function, which tables name as optimizer.function; "mean/2" is a second version
  /// of "mean". Each process of the program has it, so call this before run().
  void function(const std::string& name, const function_spec& what);
  /// Returns the parser, for options of other types. Its header, CLI/CLI.hpp, compiles slowly.
  CLI::App& command_line();

  /// Parses the command line, then plays the part of this process: the launcher that the user
  /// started, or one of the processes that it starts with the same command line.
  /// `describe` is called after the parse: in the launcher, in each process of workers, and in the
  /// server of an own_store. If it throws, the
  /// user reads its text; std::invalid_argument is for an option's value. It must give the same
  /// graph for the same command line.
  /// Returns the exit status: 0 done; 1 failed; 2 a bad command line; 128 + n ended by signal n.
  int run(int argc, char** argv, const std::function<graph(const run_options&)>& describe);

private:
  /// Declares an option of the program's own, and remembers a mistake in it.
  void add(field row);

  /// Returns the program's own options with their values after the parse.
  std::vector<own_option> own_options() const;

  std::string name_;
  run_options options_;
  server_functions functions_;
  std::vector<std::string> mistakes_; ///< Lines with which run() refuses to start.
  std::string child_;
  std::unique_ptr<CLI::App> command_line_;
  std::set<std::string> common_options_; ///< Names of the options that every program has.
  /// Gives the values of own options that were declared with a variable, by their names.
  std::map<std::string, std::function<std::string()>> own_values_;
};

} // namespace troupe
