// Describes the type of a parcel's head as a text, so that the two ends of a channel can compare
// their types: two builds of a program may differ.
#pragma once

#include "serialization/channel.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

namespace detail {

/// Has a static_assert for each property that a head must have, and is true.
template <class Head>
constexpr bool check_head() {
  static_assert(!std::is_pointer_v<Head> && !std::is_reference_v<Head>,
                "the head of a parcel is sent as bytes: a pointer means nothing to its receiver");
  static_assert(std::is_trivially_copyable_v<Head>,
                "the head of a parcel is sent as bytes: make it trivially copyable, and put arrays "
                "of floats into the tensors of the parcel");
  static_assert(std::is_default_constructible_v<Head>,
                "the head of a parcel is made before it arrives: give it a default constructor");
  static_assert(sizeof(Head) <= parcel_head_bytes_max,
                "the head of a parcel has at most 4096 bytes: put arrays of floats into the "
                "tensors of the parcel");
  return true;
}

constexpr std::size_t described_members_max = 16;
constexpr std::size_t described_values_max = 64; ///< Each element of an array is one.

/// Returns the name of a type as this compiler writes it.
template <class Type>
constexpr std::string_view type_name() {
  constexpr std::string_view whole{__PRETTY_FUNCTION__}; // "... [with Type = NAME; ...]"
  const auto begin = whole.find("Type = ") + std::string_view{"Type = "}.size();
  return whole.substr(begin, whole.find_first_of(";]", begin) - begin);
}

/// Initialises a member of any type, but not a base class of `Whole`.
template <class Whole>
struct any_member {
  template <class Member>
  requires(!std::is_base_of_v<Member, Whole>) constexpr operator Member() const noexcept;
};
/// Initialises a base class of `Whole` alone.
template <class Whole>
struct any_base {
  template <class Base>
  requires(std::is_base_of_v<Base, Whole> && !std::is_same_v<Base, Whole>) constexpr
  operator Base() const noexcept;
};

template <class Whole, std::size_t>
using member_at = any_member<Whole>;

/// Whether Whole{a, b, ..., {x, y, ...}, c, d, ...} is right, with these numbers of values.
template <class Whole, std::size_t... First, std::size_t... Inner, std::size_t... Rest>
constexpr bool takes(std::index_sequence<First...>, std::index_sequence<Inner...>,
                     std::index_sequence<Rest...>) {
  if constexpr (sizeof...(Inner) == 0)
    return requires { Whole{member_at<Whole, First>{}..., member_at<Whole, Rest>{}...}; };
  else
    return requires {
      Whole{
        member_at<Whole, First>{}..., {member_at<Whole, Inner>{}...}, member_at<Whole, Rest>{}...};
    };
}
template <class Whole, std::size_t First, std::size_t Inner = 0, std::size_t Rest = 0>
constexpr bool takes_values = takes<Whole>(std::make_index_sequence<First>{},
                                           std::make_index_sequence<Inner>{},
                                           std::make_index_sequence<Rest>{});

/// Returns the number of values of an aggregate, in which an array counts as its elements. Counts
/// no further than described_values_max + 1.
template <class Whole, std::size_t Least = 0>
constexpr std::size_t count_values() {
  if constexpr (Least <= described_values_max && takes_values<Whole, Least + 1>)
    return count_values<Whole, Least + 1>();
  else
    return Least;
}

/// Returns the values that the member takes which begins with value `At`: 1, but for an array.
template <class Whole, std::size_t All, std::size_t At, std::size_t Inner = 1>
constexpr std::size_t values_of_member() {
  if constexpr (At + Inner < All && takes_values<Whole, At, Inner + 1>)
    return values_of_member<Whole, All, At, Inner + 1>();
  else // A class takes as many values within braces, and is one value without them.
    return Inner > 1 && !takes_values<Whole, At, Inner, All - At - 1> ? Inner : 1;
}

template <class Whole, std::size_t All, std::size_t At = 0, std::size_t Members = 0>
constexpr std::size_t count_members() {
  if constexpr (At < All)
    return count_members<Whole, All, At + values_of_member<Whole, All, At>(), Members + 1>();
  else
    return Members;
}

/// Returns the number of members that structured bindings can name, if there are at most 16.
template <class Head>
constexpr std::size_t describable_members() {
  if constexpr (!std::is_aggregate_v<Head> || !std::is_class_v<Head> || requires {
                  std::tuple_size<Head>::value;
                }) // As an array has a telling name.
    return 0;
  else if constexpr (requires { Head{any_base<Head>{}}; })
    return 0;
  else if constexpr (constexpr auto values = count_values<Head>(); values > described_values_max)
    return 0;
  else if constexpr (constexpr auto members = count_members<Head, values>();
                     members > described_members_max)
    return 0;
  else
    return members;
}

template <class... Members>
struct member_list {};

/// Takes bit fields, too, as it is never called.
template <class... Members>
member_list<std::remove_cv_t<Members>...> list_of(const Members&...);

// clang-format off
template <class Head>
auto members_of(Head& x) {
  constexpr auto n = describable_members<Head>();
  if constexpr (n == 0) return member_list<>{};
  else if constexpr (n == 1) { auto& [a] = x; return decltype(list_of(a)){}; }
  else if constexpr (n == 2) { auto& [a, b] = x; return decltype(list_of(a, b)){}; }
  else if constexpr (n == 3) { auto& [a, b, c] = x; return decltype(list_of(a, b, c)){}; }
  else if constexpr (n == 4) { auto& [a, b, c, d] = x; return decltype(list_of(a, b, c, d)){}; }
  else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = x; return decltype(list_of(a, b, c, d, e)){};
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = x; return decltype(list_of(a, b, c, d, e, f)){};
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = x; return decltype(list_of(a, b, c, d, e, f, g)){};
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = x; return decltype(list_of(a, b, c, d, e, f, g, h)){};
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i)){};
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j)){};
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j, k)){};
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j, k, l)){};
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j, k, l, m)){};
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j, k, l, m, o)){};
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p)){};
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x;
    return decltype(list_of(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q)){};
  }
}
// clang-format on

template <class Type>
std::string text_of_type();

template <class... Members>
std::string text_of_members(member_list<Members...>) {
  std::string text;
  ((text += (text.empty() ? "" : ",") + text_of_type<Members>()), ...);
  return text;
}

/// Returns a text such as "u32", "f32[4]" or "experience{u32,f32}".
template <class Type>
std::string text_of_type() {
  if constexpr (std::is_array_v<Type>) {
    return text_of_type<std::remove_extent_t<Type>>() + "[" + std::to_string(std::extent_v<Type>)
           + "]";
  } else if constexpr (std::is_same_v<Type, bool>) {
    return "bool";
  } else if constexpr (std::is_enum_v<Type>) {
    return std::string{type_name<Type>()} + ":" + text_of_type<std::underlying_type_t<Type>>();
  } else if constexpr (std::is_arithmetic_v<Type>) {
    const char kind = std::is_floating_point_v<Type> ? 'f' : std::is_signed_v<Type> ? 'i' : 'u';
    return kind + std::to_string(8 * sizeof(Type));
  } else {
    std::string text{type_name<Type>()};
    if constexpr (std::is_class_v<Type>)
      if (const auto members = text_of_members(decltype(members_of(std::declval<Type&>())){});
          !members.empty())
        text += "{" + members + "}";
    return text;
  }
}

/// Returns a long text as its beginning and a checksum of all, so that a message can hold it.
std::string shortened(std::string text);

} // namespace detail

/// Returns the type's name, the types of its members, its size and its alignment, such as
/// "experience{u32,f32} 8/4". It is equal in two builds by one compiler. Members are listed for an
/// aggregate without base classes, of at most 16 members and, with elements of arrays, 64 values.
/// Exchanged names of members of one type do not show. A compile error: an anonymous union.
template <class Head>
std::string head_type_of() {
  return detail::shortened(detail::text_of_type<Head>()) + " " + std::to_string(sizeof(Head)) + "/"
         + std::to_string(alignof(Head));
}

} // namespace troupe
