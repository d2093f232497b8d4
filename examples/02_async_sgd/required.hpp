// Returns the value of a result, or throws its error, whose text main() shows to the user.
#pragma once

#include "base/error.hpp"

#include <stdexcept>

namespace async_sgd {

template <class T>
T required(troupe::result<T> what) {
  if (!what)
    throw std::runtime_error{what.error().text};
  return *std::move(what);
}

} // namespace async_sgd
