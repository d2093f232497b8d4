// Describes a program as a graph: stores of tables, sources that ask them, and stages between them.
// A graph is a value. lower() makes a plan of it, which processes, threads and simulations run.
#pragma once

#include "actors/graph/nodes/joins.hpp"
#include "actors/graph/nodes/nodes.hpp"
#include "actors/graph/nodes/path.hpp"
#include "base/error.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

class graph;

/// The most characters of the name of a node or of a stage.
constexpr std::size_t node_name_max = 10;

/// A handle of a node. It is valid for the graph that made it, as long as that is not moved.
template <class Node>
class node {
public:
  /// Leads a source to a store: `path` has stages and lists of stages, from the source on, and the
  /// node of a store at the end. Evaluators and actors have no stages. Actors need a path only to
  /// pull.
  template <class... Path>
  void into(Path&&... path);

  const std::string& name() const { return name_; }

private:
  friend class graph;
  template <class>
  friend class node;
  node(graph& owner, std::size_t index, std::string name)
      : owner_(&owner), index_(index), name_(std::move(name)) {}

  graph* owner_;
  std::size_t index_; ///< Among the nodes of its kind.
  std::string name_;
};

/// ~~~
/// troupe::graph g;
/// auto model = g.add("model", options.store(tables));
/// g.add("learners", options.workers_of(60'000, make_trainer)).into(options.stages(), model);
/// g.add("test", troupe::evaluate{make_evaluator}).into(model);
/// ~~~
///
/// Wiring mistakes that types cannot show (two nodes of one name, workers that lead nowhere) are
/// errors of validate() in one line, before any process starts.
class graph {
public:
  graph();
  graph(const graph&);
  graph(graph&&) noexcept;
  graph& operator=(const graph&);
  graph& operator=(graph&&) noexcept;
  ~graph();

  /// A path: it leads from a source through stages, in order, to a store.
  struct edge {
    std::string source;
    stage_list stages = {};
    std::optional<std::string> store = {}; ///< Nullopt: into() was not called.
  };
  /// A node with its name.
  template <class Node>
  struct named {
    std::string name;
    Node what;
    edge path = {}; ///< The path of a source; unused for a store.
  };

  /// Adds a node. `name`: unique, of the characters [a-z0-9_], at most `node_name_max`.
  template <class Node>
  requires is_store<Node> || is_source<Node> node<Node> add(std::string name, Node what) {
    const auto index = put(name, std::move(what));
    return {*this, index, std::move(name)};
  }

  /// Joins an `out` port of the first node's members with an `in` port of the second one's, as in
  /// `g.join(players, &player::seen, learners, &learner::came)`. The nodes have actors or workers.
  /// A port is joined once. `window`: parcels under way on a lane, 1 .. 1024.
  template <class From, class Sender, class Out, class To, class Receiver, class In>
  void join(const node<From>& from, Out Sender::*sends, const node<To>& to, In Receiver::*takes,
            join_shape shape = join_shape::spread, std::uint32_t window = channel_window_default);

  /// Sets a text that identifies the training data, such as a checksum; at most 40 printable ASCII
  /// characters. It is part of the job's name, so workers with other data are refused, and so is a
  /// checkpoint of other data.
  void dataset_id(std::string text) { data_ = std::move(text); }
  /// Adds a line for the user at the start, such as a remark on the data.
  void remark(std::string line) { remarks_.push_back(std::move(line)); }
  /// Names a file of the training data, or another one from which the graph was made. The run must
  /// not overwrite it. Without a dataset_id(), a checksum of these files identifies the data: the
  /// launcher reads them once more for it. So they must be regular files.
  void reads(std::string file) { files_.push_back(std::move(file)); }

  /// Returns the first mistake of the wiring in one line. Errors: invalid_argument.
  result<void> validate() const;

  const std::vector<named<any_store>>& stores() const { return stores_; }
  const std::vector<named<workers>>& worker_nodes() const { return workers_; }
  /// Returns the pipeline, which is a node of workers without trainers, too; null: there is none.
  const pipeline* pipeline_node() const { return pipeline_ ? &*pipeline_ : nullptr; }
  const std::vector<named<evaluate>>& evaluators() const { return evaluators_; }
  const std::vector<named<own_actors>>& actor_nodes() const { return actors_; }
  const std::vector<join_of_ports>& joins() const { return joins_; }
  const std::string& dataset_id() const { return data_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  const std::vector<std::string>& files() const { return files_; }

private:
  template <class>
  friend class node;

  /// These are not inline, so that programs compile fast.
  std::size_t put(const std::string& name, any_store what);
  std::size_t put(const std::string& name, workers what);
  std::size_t put(const std::string& name, pipeline what);
  std::size_t put(const std::string& name, evaluate what);
  std::size_t put(const std::string& name, own_actors what);
  edge& path_of(const node<workers>& source);
  edge& path_of(const node<pipeline>& source);
  edge& path_of(const node<evaluate>& source);
  template <class A>
  edge& path_of(const node<actors<A>>& source) {
    return path_of_actors(source.index_);
  }
  edge& path_of_actors(std::size_t index);
  void put_join(const graph* from, const graph* to, join_of_ports what);
  void note_name(const std::string& name, std::string_view what);
  void note_mistake(const std::string& what);
  void add_to(edge& path, stage next);
  void add_to(edge& path, stage_list next);
  void end(edge& path, const graph* owner, const std::string& store);

  std::vector<named<any_store>> stores_;
  std::vector<named<workers>> workers_;
  std::optional<pipeline> pipeline_;
  std::vector<named<evaluate>> evaluators_;
  std::vector<named<own_actors>> actors_;
  std::vector<join_of_ports> joins_;
  std::string data_;
  std::vector<std::string> remarks_;
  std::vector<std::string> files_;
  std::vector<std::string> names_; ///< Names of nodes and stages, each of which is unique.
  std::string mistake_;            ///< The first mistake that no later call can correct.
};

namespace detail {

template <class Part>
struct store_node : std::false_type {};
template <class Store>
struct store_node<node<Store>> : std::bool_constant<is_store<Store>> {};
template <class Part>
struct any_node : std::false_type {};
template <class Node>
struct any_node<node<Node>> : std::true_type {};
template <class Part>
concept path_part = std::convertible_to<Part, stage> || std::convertible_to<Part, stage_list>;

} // namespace detail

template <class Node>
template <class... Path>
void node<Node>::into(Path&&... path) {
  using namespace detail;
  constexpr std::size_t stores = (0 + ... + store_node<std::remove_cvref_t<Path>>::value);
  constexpr bool sources = (false || ...
                            || (any_node<std::remove_cvref_t<Path>>::value
                                && !store_node<std::remove_cvref_t<Path>>::value));
  constexpr bool known =
    (true && ... && (any_node<std::remove_cvref_t<Path>>::value || path_part<Path>));
  constexpr bool is_last = [] {
    bool last = false;
    ((last = store_node<std::remove_cvref_t<Path>>::value), ...);
    return last;
  }();
  static_assert(is_source<Node>,
                "a store asks no other node: call into() of workers, actors or evaluate");
  static_assert(known, "a path has stages, lists of stages, and the node of a store at its end");
  static_assert(!sources, "workers, actors and evaluate ask stores: a path cannot lead to them");
  static_assert(stores > 0, "the path ends in no store: give the node of a store last");
  static_assert(stores == 0 || is_last, "a store ends a path: give its node last");
  static_assert(stores <= 1, "a path has one store");
  static_assert(!std::same_as<Node, evaluate> || sizeof...(Path) == 1,
                "an evaluator reads the values of a store: its path has no stages");
  static_assert(!is_actors<Node> || sizeof...(Path) == 1,
                "actors read the values of a store: their path has no stages");
  if constexpr (is_source<Node> && known && !sources && stores == 1 && is_last) {
    auto& mine = owner_->path_of(*this);
    const auto take = [&](auto&& part) {
      using type = std::remove_cvref_t<decltype(part)>;
      if constexpr (store_node<type>::value)
        owner_->end(mine, part.owner_, part.name_);
      else
        owner_->add_to(mine, std::forward<decltype(part)>(part));
    };
    (take(std::forward<Path>(path)), ...);
  }
}

template <class From, class Sender, class Out, class To, class Receiver, class In>
void graph::join(const node<From>& from, Out Sender::*sends, const node<To>& to,
                 In Receiver::*takes, join_shape shape, std::uint32_t window) {
  using namespace detail;
  constexpr bool nodes_fit =
    (is_actors<From> || std::same_as<From, workers>)&&(is_actors<To> || std::same_as<To, workers>);
  constexpr bool ports_fit = is_port<Out> && is_port<In>;
  static_assert(nodes_fit, "a channel joins nodes of actors or workers");
  static_assert(ports_fit, "a channel joins a port troupe::out with a port troupe::in; a port "
                           "troupe::pulls needs into() alone");
  if constexpr (nodes_fit && ports_fit) {
    constexpr bool ways_fit = Out::sends && !In::sends;
    static_assert(ways_fit, "a channel leads from a port troupe::out of the first node to a port "
                            "troupe::in of the second one");
    static_assert(std::same_as<typename Out::head_type, typename In::head_type>,
                  "both ports of a channel have the same type of head");
    const auto end_of = []<class Node, class Port, class Owner>(const node<Node>& where,
                                                                Port Owner::*member) {
      if constexpr (is_actors<Node>)
        return port_of_actors<typename actor_of<Node>::type>(where.name(), member);
      else
        return port_of_trainers(where.name(), member);
    };
    put_join(from.owner_, to.owner_,
             {end_of(from, sends), end_of(to, takes), shape, window, Out::type(),
              sizeof(typename Out::head_type)});
  }
}

} // namespace troupe
