// For main(): the value of a result, or its error as an exception, whose text the user then reads.
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
