// Declares the node of a program's own actors. The class that a user writes is own_actor, in
// actors/training/own_actor.hpp, which a program includes only if it has such a node.
#pragma once

#include "actors/protocol/session/supervision.hpp"
#include "serialization/role.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace troupe {

class own_actor; // actors/training/own_actor.hpp

/// Makes actors of class A. It is made of any callable that returns a unique_ptr of one, and takes
/// either no argument or the number of the actor in its node.
template <class A>
class actor_maker {
public:
  actor_maker() = default;
  template <class Make>
  requires std::invocable<Make&> || std::invocable<Make&, std::uint32_t> actor_maker(Make make) {
    if constexpr (std::invocable<Make&, std::uint32_t>)
      make_ = std::move(make);
    else
      make_ = [make = std::move(make)](std::uint32_t) { return make(); };
  }

  const std::function<std::unique_ptr<A>(std::uint32_t)>& get() const { return make_; }

private:
  std::function<std::unique_ptr<A>(std::uint32_t)> make_;
};

/// Actors of a program, each in a process of its own. Joined by graph::join() with each other and
/// with workers.
template <class A>
struct actors {
  std::uint32_t count = 1;
  actor_maker<A> make = {}; ///< On the actor's thread; empty: A is default constructed.
  supervision on_death = {};
};

/// The node without its type.
struct own_actors {
  std::uint32_t count = 1;
  /// Makes the actor, on the thread that uses it. Empty: the program has no maker.
  std::function<std::unique_ptr<own_actor>(std::uint32_t index)> make = {};
  supervision on_death = {};

  own_actors() = default;
  template <class A>
  own_actors(actors<A> what) : count(what.count), on_death(what.on_death) {
    static_assert(std::is_convertible_v<A*, own_actor*>,
                  "an actor of a program is a class that derives from troupe::own_actor: include "
                  "troupe/own_actors.hpp");
    if (what.make.get())
      make = what.make.get();
    else if constexpr (std::is_default_constructible_v<A>)
      make = [](std::uint32_t) { return std::make_unique<A>(); };
  }
};

namespace detail {

template <class Node>
struct actor_of {};
template <class A>
struct actor_of<actors<A>> {
  using type = A;
};

} // namespace detail

template <class Node>
concept is_actors = requires {
  typename detail::actor_of<Node>::type;
};

} // namespace troupe
