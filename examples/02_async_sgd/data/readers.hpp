// Declares one reader for each file format; load_dataset() calls them.
#pragma once

#include "examples/02_async_sgd/data/dataset.hpp"

#include <string>

namespace async_sgd {

troupe::result<dataset> load_mnist(const std::string& directory);
troupe::result<dataset> load_libsvm(const std::string& train, const std::string& test,
                                    const data_options& options);
troupe::result<dataset> load_csv(const std::string& train, const std::string& test,
                                 const data_options& options);

} // namespace async_sgd
