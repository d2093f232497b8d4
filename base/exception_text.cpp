#include "base/exception_text.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

namespace troupe {

std::string type_text(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name{
    abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free};
  return name ? name.get() : type.name();
}

namespace {

bool is_blank(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char x) { return std::isspace(x) != 0; });
}

/// Returns the text of an exception of this type. `text`: null if it has none.
std::string text_or_type(const char* text, const std::string& type) {
  return text != nullptr && !is_blank(text) ? text : type + " without a text";
}

} // namespace

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& problem) {
    return text_or_type(problem.what(), type_text(typeid(problem)));
  } catch (const std::string& text) {
    return text_or_type(text.c_str(), "std::string");
  } catch (const char* text) {
    return text_or_type(text, "const char*");
  } catch (...) {
    const auto* const type = abi::__cxa_current_exception_type();
    return "the program threw " + (type ? "a value of type " + type_text(*type) : "a foreign value")
           + ", which is no std::exception";
  }
}

} // namespace troupe
