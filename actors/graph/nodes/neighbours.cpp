#include "actors/graph/nodes/neighbours.hpp"

#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace troupe {

neighbours neighbours::torus(std::uint32_t rows, std::uint32_t columns) {
  neighbours made{kind::torus};
  made.rows_ = rows;
  made.columns_ = columns;
  return made;
}

neighbours neighbours::file(std::string path) {
  neighbours made{kind::file};
  made.path_ = std::move(path);
  return made;
}

result<neighbours> neighbours::parsed(const std::string& text) {
  const failure wrong{errc::invalid_argument,
                      fmt::format("{} names no neighbour graph: use ring, torus, torus:RxC, "
                                  "exponential, complete or file:PATH",
                                  quote(text))};
  if (text == "ring")
    return ring();
  if (text == "torus")
    return torus();
  if (text == "exponential")
    return exponential();
  if (text == "complete")
    return complete();
  if (text.starts_with("file:") && text.size() > 5)
    return file(text.substr(5));
  if (!text.starts_with("torus:"))
    return wrong;
  std::uint32_t rows = 0, columns = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data() + 6, end, rows);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != 'x')
    return wrong;
  const auto second = std::from_chars(first.ptr + 1, end, columns);
  if (second.ec != std::errc{} || second.ptr != end || rows == 0 || columns == 0)
    return wrong;
  return torus(rows, columns);
}

result<neighbour_graph> neighbours::of(std::uint32_t peers) const {
  switch (kind_) {
  case kind::ring: return neighbour_graph::ring(peers);
  case kind::torus:
    if (rows_ == 0)
      return neighbour_graph::torus(peers);
    if (std::uint64_t{rows_} * columns_ != peers)
      return {errc::invalid_argument,
              fmt::format("a torus of {} x {} has {} peers, and there are {} workers: use "
                          "--workers {}",
                          rows_, columns_, std::uint64_t{rows_} * columns_, peers,
                          std::uint64_t{rows_} * columns_)};
    return neighbour_graph::torus(rows_, columns_);
  case kind::exponential: return neighbour_graph::exponential(peers);
  case kind::complete: return neighbour_graph::complete(peers);
  case kind::file: break;
  }
  std::ifstream in{path_};
  if (!in || !std::filesystem::is_regular_file(path_))
    return {errc::io_failed, "cannot read " + path_};
  auto made =
    neighbour_graph::parse_edge_list(std::string{std::istreambuf_iterator<char>{in}, {}}, peers);
  if (!made)
    return {errc::invalid_argument, path_ + ": " + made.error().text};
  return made;
}

std::string neighbours::text() const {
  switch (kind_) {
  case kind::ring: return "ring";
  case kind::torus: return rows_ == 0 ? "torus" : fmt::format("torus of {} x {}", rows_, columns_);
  case kind::exponential: return "exponential";
  case kind::complete: return "complete";
  case kind::file: break;
  }
  return "the edges of " + path_;
}

} // namespace troupe
