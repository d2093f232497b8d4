#include "examples/02_async_sgd/data/csv_file.hpp"

#include "base/quote.hpp"
#include "examples/02_async_sgd/data/csv_header.hpp"
#include "examples/02_async_sgd/data/csv_records.hpp"

#include <utility>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

using csv_fields = std::vector<std::string_view>;

bool lacks_label(std::string_view label) {
  return label.empty() || label == "?" || label == "nan" || label == "NaN" || label == "NAN";
}

/// Reads one table record by record.
class csv_parser {
public:
  csv_parser(const input_text& from, const data_options& options, const csv_file* train)
      : csv_parser(from, options, train, separator_of(from.text)) {}

  result<csv_file> parse() {
    csv_fields fields;
    while (records_.next(fields))
      if (auto taken = file_.columns == 0 ? take_first(fields) : take(fields); !taken)
        return taken.error();
    if (!records_.problem().empty())
      return bad_line(records_.problem(), from_.path, records_.line());
    if (auto decided = decide(); !decided)
      return decided.error();
    if (file_.labels.size() == 0)
      return {errc::malformed, "no line with data: " + from_.path};
    return std::move(file_);
  }

private:
  csv_parser(const input_text& from, const data_options& options, const csv_file* train,
             char separator)
      : from_(from), options_(options), train_(train), records_(from.text, separator) {
    file_.path = from.path;
    file_.separator = separator;
  }

  result<void> choose_label(const csv_fields& fields) {
    if (fields.size() < 2)
      return bad_line("a single column and no feature in " + troupe::quote(fields[0])
                        + ": columns need commas, semicolons or tabs between them",
                      from_.path, records_.line());
    const auto found = find_label(options_.label, fields, is_named_);
    if (found)
      file_.label = *found;
    else if (train_ && train_->label < fields.size())
      file_.label = train_->label; // Only the training file has a header.
    else
      return {found.error().code, found.error().text + ": " + from_.path};
    return {};
  }

  result<void> take_first(const csv_fields& fields) {
    if (auto chosen = choose_label(fields); !chosen)
      return chosen;
    file_.columns = fields.size();
    file_.first_line = records_.line();
    first_.assign(fields.begin(), fields.end());
    kind_ = is_named_ || (train_ && train_->header == first_) ? first_record::names
                                                              : classify_first(fields, file_.label);
    if (kind_ == first_record::data)
      return take(fields);
    if (kind_ == first_record::names) {
      file_.header = first_;
      return {};
    }
    file_.labels.add_place(); // Holds the place until decide().
    file_.values.resize(file_.features());
    is_open_ = true;
    return {};
  }

  result<void> take(const csv_fields& fields) {
    if (fields.size() != file_.columns)
      return bad_line(std::to_string(fields.size()) + " columns instead of "
                        + std::to_string(file_.columns),
                      from_.path, records_.line());
    file_.values.resize(file_.values.size() + file_.features());
    if (auto written = write_row(fields, file_.values.size() - file_.features(), records_.line());
        !written)
      return written;
    if (!file_.labels.add(fields[file_.label], records_.line()))
      return bad_line(too_many_labels(), from_.path, records_.line());
    double ignored = 0.0;
    if (is_open_ && kind_ == first_record::label_is_word
        && !parse_number(file_.labels.names().back().text, ignored))
      return decide(); // Words are labels here.
    return {};
  }

  /// Writes the features of a row to file_.values[at...], and checks that it has a label.
  template <class Fields>
  result<void> write_row(const Fields& fields, std::size_t at, std::uint32_t line) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      double value = 0.0;
      if (i == file_.label)
        continue;
      if (!parse_number(fields[i], value))
        return bad_line(number_fault(fields[i]) + " in " + column_name(i), from_.path, line);
      file_.values[at++] = static_cast<float>(value);
    }
    if (lacks_label(fields[file_.label]))
      return bad_line(
        "no label " + troupe::quote(fields[file_.label]) + " in "
          + (file_.label + 1 == file_.columns ? "the last column" : column_name(file_.label)),
        from_.path, line);
    return {};
  }

  std::string column_name(std::size_t index) const {
    const std::string number = "column " + std::to_string(index + 1);
    const auto& header = file_.header.empty() && train_ ? train_->header : file_.header;
    return index < header.size() ? number + " (" + troupe::quote(header[index]) + ")" : number;
  }

  /// Makes the first record a header or a row, if that is still undecided.
  result<void> decide() {
    if (!std::exchange(is_open_, false))
      return {};
    if (is_header(kind_, first_, file_.label, file_.labels)) {
      file_.header = first_;
      file_.labels.drop_first();
      file_.values.erase(file_.values.begin(),
                         file_.values.begin() + static_cast<std::ptrdiff_t>(file_.features()));
      return {};
    }
    file_.header_like_row = kind_ == first_record::counting;
    if (auto written = write_row(first_, 0, file_.first_line); !written)
      return written;
    if (!file_.labels.set_first(first_[file_.label], file_.first_line))
      return bad_line(too_many_labels(), from_.path, file_.first_line);
    return {};
  }

  const input_text from_;
  const data_options& options_;
  const csv_file* train_;
  csv_records records_;
  csv_file file_;
  bool is_named_ = false; ///< The first record has the name that --label gives.
  first_record kind_ = first_record::data;
  std::vector<std::string> first_; ///< The first record.
  bool is_open_ = false;           ///< decide() has yet to make it a header or a row.
};

} // namespace

result<csv_file> parse_csv(const input_text& from, const data_options& options,
                           const csv_file* train) {
  const auto text = check_text(from);
  if (!text)
    return text.error();
  return csv_parser({from.path, *text}, options, train).parse();
}

} // namespace async_sgd
