// Reads and draws documents as bags of words.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lda {

struct word_count {
  std::uint32_t word = 0;
  float count = 0;
};
using document = std::vector<word_count>;

struct corpus {
  std::vector<document> train, test; ///< Each tenth document is a test document.
  std::uint32_t words = 0;           ///< Words are numbered from 0 to words - 1.
  std::string file;                  ///< Path of the file; empty if the documents were drawn.
};

/// Loads one of
///   drawn          2000 documents of 600 words, from 10 topics; takes no file
///   uci-bow:FILE   lines `document word count`, with ids from 0; or a docword file of UCI, which
///                  has ids from 1 and its three sizes in front, on three lines or on one:
///                  documents, words, lines of counts; or a MatrixMarket file of whole numbers
/// Counts on several lines of one document and word are added up.
/// Sizes that the rest of the file does not have are an error. The file may be packed by gzip,
/// bzip2 or xz. Errors: io_failed, damaged, malformed, invalid_argument; the text is one line,
/// which names file and line.
troupe::result<corpus> load_corpus(const std::string& text);

} // namespace lda
