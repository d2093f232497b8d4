// Makes the kinds of fields from the places of their values, such as
//   number(at(&servers::apply_batch), 1, 1024)
#pragma once

#include "actors/graph/options/fields.hpp"
#include "base/number_fit.hpp"

#include "fmt/format.h"

#include <chrono>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe {

/// Returns the place of a part in the options, and its holder.
template <class Part>
constexpr auto part_of() {
  if constexpr (std::same_as<Part, servers>)
    return std::pair{&run_options::servers, holder::servers};
  else if constexpr (std::same_as<Part, workers>)
    return std::pair{&run_options::workers, holder::workers};
  else if constexpr (std::same_as<Part, micro_batching>)
    return std::pair{&run_options::micro, holder::pipeline};
  else if constexpr (std::same_as<Part, reduce>)
    return std::pair{&run_options::reducer, holder::reducer};
  else if constexpr (std::same_as<Part, compress>)
    return std::pair{&run_options::codec, holder::codec};
  else if constexpr (std::same_as<Part, optimizer_spec>)
    return std::pair{&run_options::optimizer, holder::own_steps};
}

/// A function from options to a value in them, with the holder of the value.
template <class Get>
struct place : Get {
  troupe::holder holder;
};

/// Returns the place of a member of the options, of a part of them, or of a member of a part.
template <class Part, class Value, class... Inner>
auto at(Value Part::*member, Inner... inner) {
  if constexpr (std::same_as<Part, run_options>) {
    auto get = [=](auto& x) -> auto& { return ((x.*member).*....*inner); };
    return place{std::move(get), holder::run};
  } else {
    constexpr auto part = part_of<Part>();
    auto get = [=](auto& x) -> auto& { return (((x.*part.first).*member).*....*inner); };
    return place{std::move(get), part.second};
  }
}

template <class Place>
using value_at = std::remove_cvref_t<std::invoke_result_t<Place, run_options&>>;

/// Returns a number as it is, and of a time its count.
template <class Value>
auto number_of(Value x) {
  if constexpr (std::is_arithmetic_v<Value>)
    return x;
  else
    return x.count();
}

template <class Place>
using number_at = decltype(number_of(value_at<Place>{}));

/// A number or a time, whose count is written. `range`: "from 1 to 9".
template <class Place>
field_kind number_as(Place place, number_at<Place> least, number_at<Place> greatest,
                     std::string form, const std::string& range) {
  return {.form = std::move(form),
          .holder = place.holder,
          .take = [=](const std::string& word, run_options& into) -> result<void> {
            const auto given = number_in(word, least, greatest, range);
            if (!given)
              return given.error();
            place(into) = value_at<Place>{*given};
            return {};
          },
          .print = [=](const run_options& x) { return fmt::to_string(number_of(place(x))); },
          .check = [=](const run_options& x) -> result<void> {
            const auto held = number_of(place(x));
            if (held >= least && held <= greatest)
              return {};
            return {errc::invalid_argument, fmt::format("is {}, which is not {}", held, range)};
          }};
}

/// A number from `least` to `greatest`.
template <class Place>
field_kind number(Place place, number_at<Place> least, number_at<Place> greatest) {
  constexpr auto* type = std::is_floating_point_v<number_at<Place>> ? "FLOAT" : "UINT";
  return number_as(place, least, greatest, fmt::format("{}:{}..{}", type, least, greatest),
                   fmt::format("from {} to {}", least, greatest));
}

/// A whole number of 64 bits.
template <class Place>
field_kind whole(Place place) {
  return number_as(place, 0, std::numeric_limits<number_at<Place>>::max(), "UINT",
                   "from 0 to 2^64 - 1");
}

/// A number above 0.
template <class Place>
field_kind positive(Place place) {
  using limits = std::numeric_limits<number_at<Place>>;
  return number_as(place, limits::min(), limits::max(), "FLOAT:POSITIVE", "above 0");
}

/// A number from 0 on.
template <class Place>
field_kind not_negative(Place place) {
  return number_as(place, 0, std::numeric_limits<number_at<Place>>::max(), "FLOAT", "from 0 on");
}

/// Prints a value by its to_string().
struct by_name {
  template <class Value>
  requires requires(const Value& x) { std::string{to_string(x)}; }
  std::string operator()(const Value& x) const { return std::string{to_string(x)}; }
};

/// A value that `parse` reads and `print` writes. Without a value, an optional prints nothing,
/// unless `print` takes optionals.
template <class Place, class Parse, class Print = by_name>
field_kind text(Place place, Parse parse, Print print = {}, std::string form = "TEXT") {
  return {.form = std::move(form),
          .holder = place.holder,
          .take = [=](const std::string& word, run_options& into) -> result<void> {
            auto given = parse(word);
            if (!given)
              return given.error();
            place(into) = *std::move(given);
            return {};
          },
          .print = [=](const run_options& x) -> std::string {
            const auto& held = place(x);
            if constexpr (std::invocable<const Print&, decltype(held)>)
              return print(held);
            else
              return held ? print(*held) : std::string{};
          }};
}

/// A flag that sets `on`.
template <class Place>
field_kind flag(Place place, value_at<Place> on) {
  return {.form = {},
          .holder = place.holder,
          .take = [=](const std::string& word, run_options& into) -> result<void> {
            if (word == "true")
              place(into) = on;
            else if constexpr (std::same_as<value_at<Place>, bool>)
              place(into) = !on;
            return {};
          },
          .print = [=](const run_options& x) { return place(x) == on ? "true" : "false"; }};
}

inline std::string as_it_is(const std::string& x) { return x; }

/// The name of a file or directory.
result<std::string> parse_path(const std::string& word);
template <class Place>
field_kind path(Place place) {
  return text(place, parse_path, as_it_is);
}

/// Returns the kind of a field that another part of a graph has.
inline field_kind held_by(holder who, field_kind what) {
  what.holder = who;
  return what;
}

// -- kinds of one field --

field_kind sync_kind();
field_kind pushes_kind();
field_kind pulls_kind();
field_kind measure_kind();
field_kind period_kind();
field_kind scrub_kind();
field_kind here_kind();
field_kind kills_kind();
field_kind slow_kind();

result<read_target> parse_read_target(const std::string& word);
std::string to_string(read_target x);
std::string url_of(const storage::etcd_address& x);
/// Reads the seconds of --until.
result<double> parse_seconds(const std::string& word);

/// A period of time or of clocks: "2s", "500ms", "1m" or "200clocks".
struct checkpoint_period {
  std::chrono::milliseconds interval{0};
  std::uint64_t clocks = 0;
};
/// Reads a period, or "never", which is none. Errors: invalid_argument.
result<checkpoint_period> parse_checkpoint_period(const std::string& text);
/// Parses "10m", or "off", which gives 0.
result<std::chrono::milliseconds> parse_scrub_interval(const std::string& text);

} // namespace troupe
