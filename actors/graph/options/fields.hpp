// Lists the values that a user can set, one row for each. The command line and its help, the checks
// of values that a program sets in its nodes, and the file for processes that make no graph come
// from this table.
#pragma once

#include "actors/graph/options/options.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe {

/// The part of a graph that has a field. actors/graph/field_checks.cpp says which graphs have it,
/// and why others have none.
enum class holder : std::uint8_t {
  run, ///< No part: the field is the run's.
  servers,
  checkpoints,
  sync,
  steps,       ///< Optimisers of tables, also of those with a server function.
  own_steps,   ///< Optimisers of tables without a server function.
  stale_steps, ///< Optimisers of tables whose steps may be stale.
  workers,
  workers_alone, ///< Workers; the lines of a pipeline have no such field.
  push_limit,    ///< Workers whose pushes may be held back.
  pipeline,
  reducer,
  codec,
};

/// How a field's value is written, where the options keep it, and which values it may have.
/// field_kinds.hpp makes them.
struct field_kind {
  std::string form;     ///< The value in --help, "UINT:1..1024"; empty: the option is a flag.
  bool repeats = false; ///< The option takes several words.
  troupe::holder holder = troupe::holder::run;
  /// Reads one word of the option; of a flag, "true" or "false". Errors: invalid_argument.
  std::function<result<void>(const std::string& word, run_options& into)> take;
  /// Returns the text that take() reads; several words have commas between them.
  std::function<std::string(const run_options& from)> print;
  /// Refuses a value that a program may not set: "is 0, which is not from 1 to 16". May be null.
  std::function<result<void>(const run_options& of)> check = {};
};

/// Properties that few fields have.
struct field_traits {
  bool is_identity = false;             ///< Another value makes another job (fingerprint()).
  bool last_wins = false;               ///< The option may be repeated, and the last value counts.
  std::vector<std::string> rivals = {}; ///< Options that cannot be given with it.
  std::string needed = {};              ///< An option that must be given with it.
  /// Returns the default in --help; null: as the kind prints it.
  std::string (*shown)(const run_options& defaults) = nullptr;
};

/// A row of the table.
struct field {
  std::string option; ///< "--apply-batch"; empty: only a program sets it.
  field_kind kind;
  std::string help;
  std::string member = {};        ///< Of a node, for messages: "servers::apply_batch".
  std::vector<role> readers = {}; ///< Roles whose members take it from their plan.
  field_traits traits = {};

  /// Returns the row with these traits.
  field but(field_traits what) && {
    traits = std::move(what);
    return std::move(*this);
  }
};

/// The fields of one group of --help, in its order.
struct field_group {
  std::string name; ///< Empty: the fields have no options.
  std::vector<field> fields;
};
using field_table = std::vector<field_group>;

/// Returns the rows of all groups.
inline auto rows_of(const field_table& table) {
  return table | std::views::transform(&field_group::fields) | std::views::join;
}

/// Returns the fields of every program.
const field_table& all_fields();

/// Declares the options on `app`; they are parsed into `options`, which must outlive it.
/// Texts that cannot be used end the parse with one line.
void declare(CLI::App& app, run_options& options, const field_table& table = all_fields());
/// Declares one option in a group. Borrowed: `options`.
CLI::Option* declare(CLI::App& group, const field& row, run_options& options);

/// Returns options that have the fields which members of this role read. All others have their
/// defaults, in every way to run.
run_options carried_to(role reader, const run_options& from,
                       const field_table& table = all_fields());

/// Texts of fields by their options, for a file.
using field_texts = std::map<std::string, std::string>;
/// Returns the texts of the fields that carried_to() carries.
field_texts texts_for(role reader, const run_options& from,
                      const field_table& table = all_fields());
/// Takes all fields of a role from their texts. Errors: malformed (a field is absent, unknown, or
/// has a text that its option would refuse).
result<void> take_texts(role reader, const field_texts& texts, run_options& into,
                        const field_table& table = all_fields());

} // namespace troupe
