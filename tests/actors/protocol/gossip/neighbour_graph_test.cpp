#include "actors/protocol/gossip/neighbour_graph.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace troupe::neighbour_graph_test {

namespace {

using peers = std::vector<std::uint32_t>;

std::string why(const result<neighbour_graph>& made) {
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::invalid_argument);
  return made.error().text;
}
std::string why_not(const char* list, std::uint32_t n) {
  return why(neighbour_graph::parse_edge_list(list, n));
}

TEST_CASE("each kind of graph has its edges") {
  CHECK(neighbour_graph::ring(4)->neighbours_of
        == std::vector<peers>{{1, 3}, {0, 2}, {1, 3}, {0, 2}});
  CHECK(neighbour_graph::ring(2)->neighbours_of == std::vector<peers>{{1}, {0}});
  const auto torus = *neighbour_graph::torus(3, 4);
  CHECK(torus.size() == 12);
  CHECK(torus.neighbours_of[0] == peers{1, 3, 4, 8});
  CHECK(torus.neighbours_of[6] == peers{2, 5, 7, 10});
  CHECK(*neighbour_graph::torus(12) == torus);
  CHECK(neighbour_graph::torus(2, 2)->neighbours_of[0] == peers{1, 2});
  CHECK(neighbour_graph::exponential(8)->neighbours_of[0] == peers{1, 2, 4, 6, 7});
  CHECK(neighbour_graph::exponential(16)->neighbours_of[3] == peers{1, 2, 4, 5, 7, 11, 15});
  CHECK(neighbour_graph::complete(3)->neighbours_of == std::vector<peers>{{1, 2}, {0, 2}, {0, 1}});
}

TEST_CASE("a graph that cannot be says why in one line") {
  CHECK(why(neighbour_graph::ring(1)) == "gossip needs 2 workers or more, not 1");
  CHECK(why(neighbour_graph::complete(0)) == "gossip needs 2 workers or more, not 0");
  CHECK(why(neighbour_graph::exponential(1025)) == "gossip has at most 1024 workers, not 1025");
  CHECK(why(neighbour_graph::torus(7))
        == "a torus of 7 peers: 7 is no product of two numbers of 2 or more: use ring");
  CHECK(why(neighbour_graph::torus(2))
        == "a torus of 2 peers: 2 is no product of two numbers of 2 or more: use ring");
  CHECK(why(neighbour_graph::torus(1, 5))
        == "a torus of 1 x 5 peers: it needs 2 rows and 2 columns or more");
  CHECK(why(neighbour_graph::torus(1u << 16, 1u << 16))
        == "gossip has at most 1024 workers, not 65536");
}

TEST_CASE("an edge list names each edge once, or each in both directions") {
  const auto once =
    *neighbour_graph::parse_edge_list("# a path\n0 1\n\t2   1 # and so on\r\n\n", 3);
  CHECK(once.neighbours_of == std::vector<peers>{{1}, {0, 2}, {1}});
  CHECK(*neighbour_graph::parse_edge_list("0 1\n1 0\n1 2\n2 1", 3) == once);
  CHECK(why_not("0 1\n1 0\n1 2\n", 3) == "asymmetric: 1 2 is there and 2 1 is not");
}

TEST_CASE("a wrong edge list says what is wrong, and where") {
  CHECK(why_not("0 1\n1 2\n2 3\n", 3)
        == "the list has peers 0 to 3, which are 4, and there are 3 "
           "workers: both numbers have to be equal");
  CHECK(why_not("0 1\n", 3)
        == "the list has peers 0 to 1, which are 2, and there are 3 workers: "
           "both numbers have to be equal");
  CHECK(why_not("0 1\n1 1\n", 2) == "line 2: an edge of peer 1 with itself");
  CHECK(why_not("0 1\n\n0 1\n", 2) == "line 3: the edge 0 1 is there twice");
  CHECK(why_not("0 1\n2 3\n4 3\n", 5) == "unconnected: no way leads from peer 2 to peers 0, 1");
  CHECK(why_not("0 1\n1 2\n3 4\n", 5) == "unconnected: no way leads from peer 0 to peers 3, 4");
  CHECK(why_not("0 2\n", 3) == "unconnected: no way leads from peer 0 to peer 1");
  CHECK(why_not("0 12\n", 13)
        == "unconnected: no way leads from peer 0 to peers 1, 2, 3, 4, 5, 6, 7, 8 and 3 more");
  CHECK(why_not("# none\n", 2) == "the list has no edge: write lines of two peers, such as 0 1");
  for (const std::string bad : {"0", "0 1 2", "0 x", "0 -1", "0,1", "0 4294967296"})
    CHECK(why_not(("0 1\n" + bad).c_str(), 2)
          == "line 2: '" + bad + "' is not two numbers of peers, such as 0 1");
  CHECK(why_not("0 4294967295\n", 2)
        == "the list has peers 0 to 4294967295, which are 4294967296, "
           "and there are 2 workers: both numbers have to be equal");
}

TEST_CASE("weights are symmetric, add up to one, and leave the dead out") {
  const auto graph = *neighbour_graph::parse_edge_list("0 1\n1 2\n1 3\n", 4);
  const auto all = graph.weights({true, true, true, true});
  CHECK(all[0 * 4 + 1] == edge_weight(1, 3));
  CHECK(all[0 * 4 + 1] == 0.25);
  const std::vector<bool> living{true, true, false, true};
  const auto healed = graph.weights(living);
  CHECK(healed[0 * 4 + 1] == doctest::Approx(1.0 / 3));
  CHECK(healed[2 * 4 + 2] == 1.0);
  for (const auto& matrix : {all, healed})
    for (std::size_t i = 0; i < 4; ++i) {
      double row = 0.0;
      for (std::size_t j = 0; j < 4; ++j) {
        row += matrix[i * 4 + j];
        CHECK(matrix[i * 4 + j] == matrix[j * 4 + i]);
      }
      CHECK(row == doctest::Approx(1.0).epsilon(1e-15));
    }
}

TEST_CASE("the spectral gap is that of the closed form") {
  const auto near = [](double x) { return doctest::Approx(x).epsilon(1e-9); };
  for (const std::uint32_t n : {3u, 4u, 5u, 8u, 17u, 64u}) {
    const double turn = std::cos(2 * std::numbers::pi / n);
    CHECK(neighbour_graph::ring(n)->spectral_gap() == near(1 - (1.0 / 3 + 2.0 / 3 * turn)));
    CHECK(neighbour_graph::complete(n)->second_eigenvalue() + 1 == near(1));
    CHECK(neighbour_graph::complete(n)->spectral_gap() == near(1));
  }
  CHECK(neighbour_graph::complete(2)->second_eigenvalue() + 1 == near(1));
  // A circle of circles: the eigenvalue is a sum over both directions.
  CHECK(neighbour_graph::torus(4, 8)->second_eigenvalue()
        == near((1 + 2 + 2 * std::cos(2 * std::numbers::pi / 8)) / 5));
  // Exponential, n = 16: circulant with steps 1, 2, 4 and 8, the last one to one neighbour.
  double largest = 0.0;
  for (int k = 1; k < 16; ++k) {
    const double angle = 2 * std::numbers::pi * k / 16;
    const double value = (1 + 2 * std::cos(angle) + 2 * std::cos(2 * angle)
                          + 2 * std::cos(4 * angle) + std::cos(8 * angle))
                         / 8;
    largest = std::max(largest, std::abs(value));
  }
  CHECK(std::abs(neighbour_graph::exponential(16)->second_eigenvalue()) == near(largest));
}

TEST_CASE("a death may cut the living ones in two") {
  const auto ring = *neighbour_graph::ring(6);
  std::vector<bool> living(6, true);
  CHECK(ring.components(living).size() == 1);
  living[0] = false;
  CHECK(ring.components(living) == std::vector<peers>{{1, 2, 3, 4, 5}});
  living[2] = false;
  CHECK(ring.components(living) == std::vector<peers>{{3, 4, 5}, {1}});
  CHECK(ring.components(std::vector<bool>(6, false)).empty());
}

} // namespace

} // namespace troupe::neighbour_graph_test
