// Returns the value of a result, or throws its error, whose text program::run() prints.
#pragma once

#include "base/error.hpp"

#include <stdexcept>

namespace async_sgd {

/// Throws std::invalid_argument if a value of an option cannot be used, else std::runtime_error.
template <class T>
T required(troupe::result<T> what) {
  if (!what && what.error().code == troupe::errc::invalid_argument)
    throw std::invalid_argument{what.error().text};
  if (!what)
    throw std::runtime_error{what.error().text};
  return *std::move(what);
}

} // namespace async_sgd
