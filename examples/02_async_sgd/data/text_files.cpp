// Reads the two text files of a data set one after the other, so that only one text is in memory.
#include "examples/02_async_sgd/data/csv_file.hpp"
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/libsvm.hpp"
#include "examples/02_async_sgd/data/readers.hpp"

using troupe::result;

namespace async_sgd {

namespace {

result<csv_file> load_csv_file(const std::string& path, const data_options& options,
                               const csv_file* train) {
  const auto text = read_bytes(path);
  if (!text)
    return text.error();
  return parse_csv({path, *text}, options, train);
}

result<libsvm_file> load_libsvm_file(const std::string& path, const data_options& options) {
  const auto text = read_bytes(path);
  if (!text)
    return text.error();
  return parse_libsvm({path, *text}, options);
}

} // namespace

result<dataset> load_csv(const std::string& train, const std::string& test,
                         const data_options& options) {
  auto train_file = load_csv_file(train, options, nullptr);
  if (!train_file)
    return train_file.error();
  auto test_file = load_csv_file(test, options, &*train_file);
  if (!test_file)
    return test_file.error();
  return join_csv(*std::move(train_file), *std::move(test_file));
}

result<dataset> load_libsvm(const std::string& train, const std::string& test,
                            const data_options& options) {
  auto train_file = load_libsvm_file(train, options);
  if (!train_file)
    return train_file.error();
  auto test_file = load_libsvm_file(test, options);
  if (!test_file)
    return test_file.error();
  return join_libsvm(*std::move(train_file), *std::move(test_file), options);
}

} // namespace async_sgd
