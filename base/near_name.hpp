// Finds the name that a misspelt word was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Returns the element of `names` that is nearest to `word`, or an empty text if none is near. The
/// distance is the number of characters to insert, delete or replace (Levenshtein 1966). A name is
/// near if at most a third of the word's characters differ, or if it begins with the word.
std::string near_name(std::string_view word, std::span<const std::string> names);

} // namespace troupe
