#include "examples/02_async_sgd/data/csv_records.hpp"

#include "base/quote.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>

namespace async_sgd {

char separator_of(std::string_view text) {
  std::size_t commas = 0, semicolons = 0, tabs = 0;
  bool in_quotes = false, is_blank = true;
  for (const char c : text) {
    if (c == '"')
      in_quotes = !in_quotes;
    if ((c == '\n' || c == '\r') && !in_quotes && !is_blank)
      break;
    is_blank = is_blank && (c == '\n' || c == '\r' || c == ' ' || c == '\t');
    commas += !in_quotes && c == ',';
    semicolons += !in_quotes && c == ';';
    tabs += !in_quotes && c == '\t';
  }
  if (tabs > 0 && tabs >= semicolons && tabs >= commas)
    return '\t';
  return semicolons > 0 && semicolons >= commas ? ';' : ',';
}

bool csv_records::at_line_end() const {
  return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
}

void csv_records::take_line_end() {
  if (at_ == text_.size())
    return;
  at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
  ++line_;
}

void csv_records::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')
         && text_[at_] != separator_)
    ++at_;
}

std::string_view csv_records::take_bare() {
  const std::size_t begin = at_;
  while (!at_line_end() && text_[at_] != separator_)
    ++at_;
  return trim(text_.substr(begin, at_ - begin));
}

std::string_view csv_records::take_quoted() {
  const std::size_t begin = ++at_;
  std::string* unescaped = nullptr;
  std::size_t piece = begin;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n' || (c == '\r' && text_.substr(at_ + 1, 1) != "\n"))
      ++line_;
    if (c != '"')
      continue;
    if (text_.substr(at_ + 1, 1) != "\"")
      break;
    ++at_; // Two quotes are one.
    if (!unescaped)
      unescaped = &unescaped_.emplace_back();
    unescaped->append(text_.substr(piece, at_ - piece));
    piece = at_ + 1;
  }
  if (at_ == text_.size()) {
    problem_ = "a quote that no other one closes";
    return {};
  }
  const std::string_view last = text_.substr(piece, at_ - piece);
  ++at_;
  if (!unescaped)
    return last;
  return unescaped->append(last);
}

csv_records::field_end csv_records::take_field(std::string_view& field) {
  skip_blanks();
  if (at_ < text_.size() && text_[at_] == '"') {
    field = take_quoted();
    skip_blanks();
    if (problem_.empty() && !at_line_end() && text_[at_] != separator_)
      problem_ = "text behind the closing quote of " + troupe::quote(field);
  } else {
    field = take_bare();
  }
  if (!problem_.empty())
    return field_end::record;
  if (at_ < text_.size() && text_[at_] == separator_) {
    ++at_;
    return field_end::separator;
  }
  take_line_end();
  return field_end::record;
}

bool csv_records::next(std::vector<std::string_view>& fields) {
  while (problem_.empty() && at_ < text_.size()) {
    fields.clear();
    unescaped_.clear();
    record_line_ = line_;
    std::string_view field;
    while (take_field(field) == field_end::separator)
      fields.push_back(field);
    fields.push_back(field);
    if (problem_.empty() && (fields.size() > 1 || !field.empty()))
      return true;
  }
  return false;
}

} // namespace async_sgd
