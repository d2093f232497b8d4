// Helps the decoders to check bytes from untrusted peers. Inside them a defect is an exception, as
// it is in Cap'n Proto; wire::decode and wire::decode_job catch it.
#pragma once

#include "base/error.hpp"

#include <capnp/list.h>
#include <capnp/message.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::wire::detail {

// Limits of strings, and of lists whose elements may be larger in memory than on the wire. They
// bound the memory that a frame of head_bytes_max makes a decoder allocate.
constexpr std::size_t pieces_max = std::size_t{1} << 18;
constexpr std::size_t leases_max = 4096;
constexpr std::size_t clocks_max = 65'536;
constexpr std::size_t files_max = 65'536;
constexpr std::size_t deaths_max = 65'536;
constexpr std::size_t members_max = 131'072;
constexpr std::size_t events_max = 4096;
constexpr std::size_t event_fields_max = 16;
constexpr std::size_t text_bytes_max = 4096;
constexpr std::size_t port_bytes_max = 256;     ///< Name of a port in its counters.
constexpr std::size_t refusal_bytes_max = 1024; ///< A refusal must fit into hello_bytes_max.

class rejected : public std::exception {
public:
  explicit rejected(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

private:
  std::string text_;
};

/// Runs `body` and turns any exception into errc::malformed.
template <class T, class Body>
result<T> guarded(Body&& body) {
  try {
    return body();
  } catch (const rejected& defect) {
    return {errc::malformed, defect.what()};
  } catch (const kj::Exception& defect) {
    return {errc::malformed, std::string{"not a valid message: "} + defect.getDescription().cStr()};
  } catch (const std::exception& defect) {
    return {errc::malformed, std::string{"not a valid message: "} + defect.what()};
  }
}

/// Every message visits its words once. Twice as many, plus a share for small messages, is ample.
inline capnp::ReaderOptions reader_options(std::size_t words) {
  return {.traversalLimitInWords = words * 2 + 1024, .nestingLimit = 16};
}

inline void check_count(std::size_t count, std::size_t count_max, const char* name) {
  if (count > count_max)
    throw rejected{std::string{"too many "} + name + ": " + std::to_string(count)};
}

/// Requires: the enumerators of E are 0 .. last without holes.
template <class E>
E read_enum(std::underlying_type_t<E> number, E last, const char* name) {
  if (number > static_cast<std::underlying_type_t<E>>(last))
    throw rejected{std::string{"unknown "} + name + ": " + std::to_string(number)};
  return static_cast<E>(number);
}

inline std::string read_text(capnp::Text::Reader text, std::size_t bytes_max = text_bytes_max) {
  check_count(text.size(), bytes_max, "characters in a string");
  return {text.begin(), text.size()};
}

/// Returns the text, cut to the receiver's limit. A cut text is held by `scratch`.
inline capnp::Text::Reader cut_text(const std::string& text, std::string& scratch,
                                    std::size_t bytes_max = text_bytes_max) {
  if (text.size() <= bytes_max)
    return {text.c_str(), text.size()};
  scratch = text.substr(0, bytes_max);
  return {scratch.c_str(), scratch.size()};
}

/// Reads lists of plain numbers or of ids; their size on the wire bounds their size in memory.
template <class T, class List>
std::vector<T> read_numbers(const List& list) {
  std::vector<T> values;
  values.reserve(list.size());
  for (const auto element : list)
    values.push_back(T{element});
  return values;
}

template <class T, class List>
void write_numbers(const std::vector<T>& values, List list) {
  for (unsigned i = 0; i < list.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>)
      list.set(i, values[i]);
    else
      list.set(i, values[i].value);
  }
}

} // namespace troupe::wire::detail
