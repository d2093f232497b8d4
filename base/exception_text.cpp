#include "base/exception_text.hpp"

#include <exception>

namespace troupe {

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& problem) {
    return problem.what();
  } catch (...) {
    return "the program threw something that is no std::exception";
  }
}

} // namespace troupe
