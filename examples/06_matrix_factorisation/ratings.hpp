// Reads and draws ratings: triples of a user, an item and a number.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace factorisation {

struct rating {
  std::uint64_t user = 0, item = 0;
  float value = 0;
};

struct ratings {
  std::vector<rating> train, test;
  float mean = 0;                   ///< Of the training ratings.
  std::vector<std::string> files;   ///< Paths of the files; empty if the ratings were drawn.
  std::vector<std::string> remarks; ///< Lines for the user on the files.
};

/// Loads one of
///   drawn                  80,000 + 20,000 ratings of 1000 users and 1500 items; takes no file
///   movielens:TRAIN,TEST   lines `user item rating ...` of MovieLens, with tabs, blanks, commas,
///                          semicolons or "::" between the columns; the first line may be a
///                          header, and columns of CSV may be in quotes
/// Files may be packed by gzip, bzip2 or xz. Errors: io_failed, damaged, malformed,
/// invalid_argument; the text is one line, which names file and line.
troupe::result<ratings> load_ratings(const std::string& text);

} // namespace factorisation
