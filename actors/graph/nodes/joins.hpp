// Declares the joins of a graph: which port of which node sends to which port of which other node.
#pragma once

#include "actors/graph/nodes/nodes.hpp"
#include "serialization/channel.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>

namespace troupe {

class port_base; // actors/training/ports.hpp

/// The lanes of a channel.
enum class join_shape : std::uint8_t {
  spread,     ///< From every sender to every receiver. Senders choose.
  one_to_one, ///< From member i to member i.
  circle,     ///< From member i to member i + 1, and from the last one to member 0.
};
const char* to_string(join_shape which);

/// A port of the members of a node, without its type.
struct joined_port {
  std::string node;
  /// Returns the port of a member; null if the member's class does not have it. The one that fits
  /// the node's kind is set.
  std::function<port_base*(own_actor&)> of_actor = {};
  std::function<port_base*(trainer&)> of_trainer = {};

  bool (*is_in)(const made_type& what) = nullptr; ///< Whether objects of a class have the port.
  std::type_index member = typeid(void);          ///< The type of the pointer to member ...
  std::ptrdiff_t place = 0;                       ///< ... and its value.

  bool is(const joined_port& other) const {
    return node == other.node && member == other.member && place == other.place;
  }
};

struct join_of_ports {
  joined_port from, to;
  join_shape shape = join_shape::spread;
  std::uint32_t window = channel_window_default; ///< Parcels under way on a lane.
  std::string head = {};                         ///< head_type_of() of the ports.
  std::size_t head_bytes = 0;                    ///< Size of a head.
};

namespace detail {

template <class Port>
concept is_port = requires {
  typename Port::head_type;
  Port::sends;
};

template <class Port, class Owner>
joined_port port_of(std::string node, Port Owner::*member) {
  joined_port made{.node = std::move(node)};
  made.is_in = [](const made_type& type) { return type.is<Owner>(); };
  made.member = typeid(member);
  static_assert(sizeof(member) == sizeof(made.place)); // As in the Itanium C++ ABI.
  __builtin_memcpy(&made.place, &member, sizeof(member));
  return made;
}

/// Returns a port of actors of class A.
template <class A, class Port, class Owner>
joined_port port_of_actors(std::string node, Port Owner::*member) {
  static_assert(std::is_base_of_v<Owner, A>,
                "the actors of this node are of another class than the one that has the port");
  auto made = port_of(std::move(node), member);
  made.of_actor = [member](own_actor& one) -> port_base* {
    auto* const has_port = dynamic_cast<A*>(&one);
    return has_port == nullptr ? nullptr : &(has_port->*member);
  };
  return made;
}

/// Returns a port of trainers, whose class may be known only when one is made.
template <class Port, class Owner>
joined_port port_of_trainers(std::string node, Port Owner::*member) {
  auto made = port_of(std::move(node), member);
  made.of_trainer = [member](trainer& one) -> port_base* {
    auto* const has_port = dynamic_cast<Owner*>(&one);
    return has_port == nullptr ? nullptr : &(has_port->*member);
  };
  return made;
}

} // namespace detail

} // namespace troupe
