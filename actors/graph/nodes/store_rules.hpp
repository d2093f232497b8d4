// The answers of each kind of store. The rest of actors/graph asks them, and no kind by its name.
#pragma once

#include "actors/graph/nodes/nodes.hpp"
#include "base/error.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct plan; // actors/graph/plan.hpp

/// Options that a kind refuses, and why. `options` are separated by spaces.
struct refused_options {
  std::string_view options;
  std::string_view why; ///< Behind the option that chose the kind: "has no servers".
};

/// One kind of store. Its file in actors/graph/stores/ has the functions.
struct store_rules {
  store_kind kind;

  // -- the command line --
  /// A word of --sync that chooses the kind, and the consistency of its tables then; empty: a mode
  /// of --sync chooses it, or only a program does.
  std::string_view sync_word = {};
  consistency sync = {};
  std::string_view help = {}; ///< Of that word.
  /// Makes the store of the command line: tables with its consistency and optimiser. Null: only a
  /// program makes it.
  any_store (*make)(std::vector<table_spec> tables, const servers& fields) = nullptr;
  /// Set for a kind that a word or a mode of --sync chooses. Other kinds refuse options in check().
  std::span<const refused_options> refused = {};

  // -- its members --
  bool has_servers = false;   ///< Workers send requests to server processes.
  bool is_one_memory = false; ///< Workers write to the memory of their process.
  bool has_ranks = false;     ///< Workers add up gradients among themselves, each a process.

  // -- reasons, behind the name of the node --
  std::string_view why_no_servers = {};     ///< Fields of servers have no effect.
  std::string_view why_no_checkpoints = {}; ///< Fields of checkpoints have no effect.
  std::string_view why_no_steps = {};       ///< Fields of optimisers have no effect.
  std::string_view why_no_sync = {};        ///< The consistency is no choice.
  std::string_view why_not_frozen = {};     ///< It has no frozen tables.
  std::string_view why_no_values = {};      ///< No table begins with the values of a file.
  std::string_view why_no_actors = {};      ///< The graph has no actors and no channels.

  // -- promises, for people --
  std::string (*text)(const plan& what);
  bool is_exactly_once = true;
  std::string (*lost_at_death)(const plan& what);
  std::string_view why_no_replay = {}; ///< Behind the name of the node.

  // -- its job --
  /// Sets the fields that the kind leaves no choice, in tables and options.
  void (*settle)(const any_store& store, plan& made);
  /// Sets those of the job, once the others are filled in.
  void (*fill)(plan& made);
  /// Refuses fields of nodes and stages that have no meaning for it. Errors: invalid_argument.
  result<void> (*check)(const plan& what);
};

extern const store_rules rules_of_servers, rules_of_shared_memory, rules_of_all_reduce,
  rules_of_own_store, rules_of_gossip;

/// Returns the rules of all kinds, in their order.
std::span<const store_rules* const> all_store_rules();
const store_rules& rules_of(store_kind kind);

} // namespace troupe
