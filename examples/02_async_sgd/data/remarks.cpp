#include "examples/02_async_sgd/data/remarks.hpp"

#include "base/quote.hpp"

#include <algorithm>

namespace async_sgd {

namespace {

constexpr std::size_t listed_classes_max = 10;
constexpr std::size_t listed_name_max = 20; ///< Characters.

} // namespace

std::string count_of(std::uint64_t count, const std::string& what) {
  const bool ends_with_s = what.ends_with('s');
  return std::to_string(count) + " " + what + (count == 1 ? "" : ends_with_s ? "es" : "s");
}

std::string describe_classes(std::span<const class_count> classes) {
  std::string text = count_of(classes.size(), "class") + " (";
  const std::size_t listed = std::min(classes.size(), listed_classes_max);
  for (std::size_t i = 0; i < listed; ++i)
    text += (i > 0 ? ", " : "") + troupe::printable(classes[i].name, listed_name_max) + " "
            + std::to_string(classes[i].rows);
  if (classes.size() > listed)
    text += " and " + std::to_string(classes.size() - listed) + " more";
  return text + ")";
}

void remark_single_rows(const std::string& path, std::span<const class_count> classes,
                        std::vector<std::string>& remarks) {
  std::string names;
  std::size_t count = 0;
  for (const class_count& one : classes)
    if (one.rows == 1 && ++count <= listed_classes_max)
      names += (count > 1 ? ", " : "") + troupe::quote(one.name);
  if (count > listed_classes_max)
    names += " and " + std::to_string(count - listed_classes_max) + " more";
  if (count == 1)
    remarks.push_back("class " + names + " has a single row in " + path);
  else if (count > 1)
    remarks.push_back(std::to_string(count) + " classes have a single row in " + path + ": "
                      + names);
}

} // namespace async_sgd
