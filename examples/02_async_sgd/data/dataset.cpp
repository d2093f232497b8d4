#include "examples/02_async_sgd/data/dataset.hpp"

#include "base/quote.hpp"
#include "examples/02_async_sgd/data/readers.hpp"

#include <algorithm>
#include <array>
#include <cassert>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

samples make_digits(std::uint64_t first, std::uint64_t count) {
  samples result{{}, digit_cache(first, count)};
  result.labels.reserve(count);
  for (std::uint64_t i = first; i < first + count; ++i)
    result.labels.push_back(digit_label(i));
  return result;
}

dataset make_digits() {
  dataset data;
  data.features = digit_pixels;
  data.classes = 10;
  data.train = make_digits(0, digits_train);
  data.test = make_digits(digits_train, digits_test);
  data.remarks.push_back("drew digits: " + std::to_string(digits_train) + " + "
                         + std::to_string(digits_test) + " images, 10 classes");
  return data;
}

using pair_loader = result<dataset> (*)(const std::string&, const std::string&,
                                        const data_options&);

result<dataset> load_pair(pair_loader load, const std::string& kind, const std::string& files,
                          const data_options& options) {
  const auto comma = files.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == files.size())
    return {errc::invalid_argument, "expected two files, " + kind + ":TRAIN,TEST, got "
                                      + troupe::quote(kind + ":" + files)};
  return load(files.substr(0, comma), files.substr(comma + 1), options);
}

result<dataset> load(const std::string& text, const data_options& options) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (!options.label.empty() && kind != "csv")
    return {errc::invalid_argument,
            "--label needs CSV data, csv:TRAIN,TEST, not " + troupe::quote(text)};
  if (options.zero_based && kind != "libsvm")
    return {errc::invalid_argument,
            "--zero-based needs LIBSVM data, libsvm:TRAIN,TEST, not " + troupe::quote(text)};
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (text == "digits")
    return make_digits();
  if (kind == "mnist" && !rest.empty())
    return load_mnist(rest);
  if (kind == "libsvm")
    return load_pair(load_libsvm, kind, rest, options);
  if (kind == "csv")
    return load_pair(load_csv, kind, rest, options);
  return {errc::invalid_argument, "unknown data set " + troupe::quote(text)
                                    + "; known: digits, mnist:DIR, libsvm:TRAIN,TEST, "
                                      "csv:TRAIN,TEST"};
}

void scale_bytes(const std::uint8_t* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[i]) * (1.0f / 255.0f);
}

} // namespace

result<dataset> load_dataset(const std::string& text, const data_options& options) {
  auto data = load(text, options);
  if (data)
    data->name = text;
  return data;
}

void gather(const samples& from, std::uint32_t features, std::span<const std::uint32_t> which,
            std::span<float> out) {
  assert(out.size() == which.size() * features);
  if (const auto* bytes = std::get_if<byte_rows>(&from.rows)) {
    for (std::size_t i = 0; i < which.size(); ++i)
      scale_bytes(bytes->values.get() + std::size_t{which[i]} * features, features,
                  out.data() + i * features);
  } else if (const auto* floats = std::get_if<float_rows>(&from.rows)) {
    for (std::size_t i = 0; i < which.size(); ++i)
      std::copy_n(floats->values.data() + std::size_t{which[i]} * features, features,
                  out.data() + i * features);
  } else {
    std::array<std::uint8_t, digit_pixels> scratch;
    const auto& drawn = std::get<digit_cache>(from.rows);
    for (std::size_t i = 0; i < which.size(); ++i)
      scale_bytes(drawn.at(which[i], scratch).data(), digit_pixels, out.data() + i * features);
  }
}

void add_features(const sparse_rows& rows, std::span<const std::uint32_t> which,
                  std::vector<std::uint64_t>& to) {
  for (const std::uint32_t sample : which)
    for (std::uint64_t k = rows.first[sample]; k < rows.first[sample + 1]; ++k)
      to.push_back(rows.columns[k]);
}

} // namespace async_sgd
