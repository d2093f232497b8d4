#include "base/exception_text.hpp"

#include "doctest/doctest.h"

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

namespace exception_text_test {

using namespace troupe;

struct no_text : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

struct blank_text : std::runtime_error {
  blank_text() : std::runtime_error{" \n\t"} {}
};

std::string text_of(const std::function<void()>& thrower) {
  try {
    thrower();
  } catch (...) {
    return exception_text();
  }
  return "nothing was thrown";
}

TEST_CASE("exceptions and thrown texts keep their text") {
  CHECK(text_of([] { throw std::runtime_error{"no data"}; }) == "no data");
  CHECK(text_of([] { throw std::string{"no rows"}; }) == "no rows");
  CHECK(text_of([] { throw "no columns"; }) == "no columns");
}

TEST_CASE("an exception with a blank text is named by its own type") {
  CHECK(text_of([] { throw std::runtime_error{""}; }) == "std::runtime_error without a text");
  CHECK(text_of([] { throw std::invalid_argument{"  "}; })
        == "std::invalid_argument without a text");
  CHECK(text_of([] { throw blank_text{}; }) == "exception_text_test::blank_text without a text");
  CHECK(text_of([] { throw no_text{}; }) == "exception_text_test::no_text without a text");
  CHECK(text_of([] { throw ""; }) == "const char* without a text");
  CHECK(text_of([] { throw std::string{}; }) == "std::string without a text");
}

TEST_CASE("a value that is no exception is named by its type") {
  struct own {};
  CHECK(text_of([] { throw 42; })
        == "the program threw a value of type int, which is no std::exception");
  CHECK(text_of([] { throw own{}; }).find("own") != std::string::npos);
  CHECK(text_of([] { throw static_cast<const char*>(nullptr); }) == "const char* without a text");
}

TEST_CASE("a title stands before the text, also before the type of an exception without one") {
  const auto titled_text = [](const std::function<void()>& thrower) {
    return text_of([&] { titled("the node", thrower); });
  };
  CHECK(titled_text([] { throw std::runtime_error{"no data"}; }) == "the node: no data");
  CHECK(titled_text([] { throw std::runtime_error{""}; })
        == "the node: std::runtime_error without a text");
}

TEST_CASE("an exception of a user's code is the failure of its job") {
  try {
    throw std::runtime_error{""};
  } catch (...) {
    CHECK(exception_failure() == failure{errc::job_failed, "std::runtime_error without a text"});
  }
}

} // namespace exception_text_test
