#include "examples/02_async_sgd/data/graph_data.hpp"

namespace async_sgd {

void add_data(troupe::graph& to, const dataset& data) {
  to.dataset_id("data " + checksum_of(data));
  for (const auto& line : data.remarks)
    to.remark(line);
  for (const auto& file : data.files)
    to.reads(file);
}

} // namespace async_sgd
