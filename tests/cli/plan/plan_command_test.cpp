#include "cli/plan/plan_command.hpp"

#include "base/system/file.hpp"
#include "cli/plan/sizing.hpp"
#include "cli/plan/svg.hpp"
#include "cli/plan/topology_file.hpp"
#include "cli/plan/units.hpp"
#include "kernels/schedules/presets.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace troupe::plan_command_test {

namespace {

namespace fs = std::filesystem;

struct folder {
  folder() {
    std::string form = (fs::temp_directory_path() / "troupe_plan_XXXXXX").string();
    path = mkdtemp(form.data());
  }
  ~folder() { fs::remove_all(path); }

  fs::path path;
};

/// Runs a command line; returns the error's text, or "" on success.
std::string outcome(std::vector<std::string> words) {
  CLI::App app;
  const auto command = plan_command(app);
  std::ranges::reverse(words);
  words.emplace_back("plan");
  try {
    app.parse(words);
  } catch (const CLI::ParseError& problem) {
    return problem.what();
  }
  const auto done = command.run();
  return done ? "" : done.error().text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr auto two_gpus = R"({
  "name": "two GPUs",
  "nodes": [
    {"name": "gpu0", "kind": "device"},
    {"name": "gpu1", "kind": "device"},
    {"name": "cpu", "kind": "host", "gb_per_s": 20}
  ],
  "links": [
    {"between": ["gpu0", "cpu"], "gb_per_s": 16, "latency_us": 5},
    {"between": ["cpu", "gpu1"], "gb_per_s": 8, "duplex": "half"}
  ]
})";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

} // namespace

TEST_CASE("plan: sizes, rates and times have units") {
  CHECK_EQ(*planning::parse_bytes("160MB"), 160e6);
  CHECK_EQ(*planning::parse_bytes("1.5 GiB"), 1.5 * 1024 * 1024 * 1024);
  CHECK_EQ(*planning::parse_bytes("4096"), 4096);
  CHECK_EQ(*planning::parse_rate("10Gbit/s"), 1.25e9);
  CHECK_EQ(*planning::parse_rate("16GB/s"), 16e9);
  CHECK_EQ(*planning::parse_seconds("100ms"), doctest::Approx(0.1));
  for (const auto* const text :
       {"", "MB", "1 MB s", "160mb", "nan", "inf", "1e999", "1e308TB", "0x"})
    CHECK_EQ(planning::parse_bytes(text).error().text,
             "'" + std::string(text) + "' is not a size such as 160MB or 64KiB");
  CHECK_EQ(planning::parse_bytes("0").error().text, "'0' is not above 0");
  CHECK_EQ(planning::parse_bytes("1e30").error().text, "'1e30' is too large");
  CHECK_EQ(planning::parse_rate("-1GB/s").error().text, "'-1GB/s' is not above 0");
  CHECK_EQ(planning::parse_rate("10").error().text,
           "'10' is not a rate such as 10Gbit/s or 16GB/s");
  CHECK_EQ(planning::parse_seconds("5").error().text, "'5' is not a time such as 100ms or 1.5s");
}

TEST_CASE("plan: values are shown with three digits") {
  CHECK_EQ(planning::show_seconds(0.06002), "60.0 ms");
  CHECK_EQ(planning::show_seconds(2.649e-3), "2.65 ms");
  CHECK_EQ(planning::show_seconds(114e-6), "114 us");
  CHECK_EQ(planning::show_seconds(0.64), "640 ms");
  CHECK_EQ(planning::show_seconds(7), "7.00 s");
  CHECK_EQ(planning::show_seconds(1200), "20.0 min");
  CHECK_EQ(planning::show_bytes(240e6), "240 MB");
  CHECK_EQ(planning::show_bytes(999.9e3), "1 MB");
  CHECK_EQ(planning::show_bits(1.25e9), "10 Gbit/s");
}

TEST_CASE("plan: a topology file has nodes and links") {
  const auto net = planning::parse_topology(two_gpus, "x.json");
  REQUIRE(net);
  CHECK_EQ(net->name, "two GPUs");
  REQUIRE_EQ(net->nodes.size(), 3);
  CHECK_EQ(net->nodes[2].kind, kernels::node_kind::host);
  CHECK_EQ(net->nodes[2].bytes_per_second, 20e9);
  REQUIRE_EQ(net->links.size(), 2);
  CHECK_EQ(net->links[0].b, 2);
  CHECK_EQ(net->links[0].bytes_per_second, 16e9);
  CHECK_EQ(net->links[0].latency_seconds, doctest::Approx(5e-6));
  CHECK(net->links[0].full_duplex);
  CHECK_FALSE(net->links[1].full_duplex);
}

TEST_CASE("plan: a topology file that cannot be used gives one line") {
  const std::vector<std::array<std::string, 3>> rows{
    {R"("gpu1"], "gb)", R"("gpu7"], "gb)",
     "x: link 2: there is no node \"gpu7\"; add it to 'nodes'"},
    {R"("kind": "host")", R"("kind": "cpu")",
     "x: node 'cpu': its kind is 'cpu'; known are device, host, switch"},
    {R"("gb_per_s": 16)", R"("gb_per_s": 0)",
     "x: link between 'gpu0' and 'cpu': its bandwidth must be above 0"},
    {R"("gb_per_s": 16)", R"("gb_per_s": -16)",
     "x: link between 'gpu0' and 'cpu': its bandwidth must be above 0"},
    {R"("gb_per_s": 20)", R"("gb_per_s": 0)",
     "x: node 'cpu': its bandwidth must be above 0; leave it out for no limit"},
    {R"("gb_per_s": 16)", R"("gb_per_s": "16")", "x: link 1: 'gb_per_s' is not a number"},
    {R"("gb_per_s": 16, )", "", "x: link 1: 'gb_per_s' is missing"},
    {R"("gb_per_s": 16)", R"("gb_per_s": 1e999)", "x: a number is too large"},
    {R"("latency_us": 5)", R"("latency_us": -5)",
     "x: link between 'gpu0' and 'cpu': its latency must be 0 or more"},
    {R"("latency_us")", R"("latency")",
     "x: link 1: unknown key 'latency'; known are between, gb_per_s, latency_us, duplex"},
    {R"("half")", R"("both")", "x: link 2: its duplex is \"both\"; known are full, half"},
    {R"(["cpu", "gpu1"])", R"(["gpu0", "cpu"])",
     "x: link between 'gpu0' and 'cpu' comes twice; give one with the sum of their bandwidths"},
    {R"(["cpu", "gpu1"])", R"(["cpu"])",
     "x: link 2: 'between' is not a list of two names of nodes"},
    {R"(,
    {"between": ["cpu", "gpu1"], "gb_per_s": 8, "duplex": "half"})",
     "",
     "x: 'gpu1' is not connected to 'gpu0' (over hosts and switches; devices pass nothing on); add "
     "a link"},
    {R"("device"},)", R"("device"}, {"name": "gpu0", "kind": "device"},)",
     "x: two nodes are called 'gpu0'; give each its own name"},
    {R"("name": "gpu0", )", "", "x: node 1: 'name' is missing or not a text"},
    {R"("gpu0", "k)", R"("gpu\u001b[31m0", "k)", "x: node 1: 'name' is not one line of text"},
    {R"("two GPUs")", R"("two\nGPUs")", "x: the topology: 'name' is not one line of text"},
    {R"("nodes")", R"("knots")",
     "x: the topology: unknown key 'knots'; known are name, note, nodes, links"},
    {R"("host", )", R"("host" )", "x: not JSON: line 6 cannot be read"},
    {"]\n}", "]", "x: not JSON: line 11 cannot be read"},
    {two_gpus, "[1]", "x: the topology is not an object {...}"},
    {two_gpus, "{}", "x: 'nodes' is missing or not a list"},
    {two_gpus, "", "x: not JSON: line 1 cannot be read"},
  };
  for (const auto& [what, by, expected] : rows) {
    const auto net = planning::parse_topology(replaced(two_gpus, what, by), "x");
    CAPTURE(expected);
    REQUIRE_FALSE(net);
    CHECK_EQ(net.error().text, expected);
  }
}

TEST_CASE("plan: a command line that cannot be used gives one line") {
  CHECK_EQ(outcome({"--bytes", "0", "--topology", "pcie-4gpu"}), "--bytes: '0' is not above 0");
  CHECK_EQ(outcome({"--bytes", "1MB", "--topology", "nope"}),
           "no topology 'nope': it is no file, and known are pcie-4gpu, p3.16xlarge, dgx-2, "
           "2x8-100gbe, fat-tree, machine");
  CHECK_EQ(outcome({"--topology", "pcie-4gpu"}), "--bytes is required");
  CHECK(outcome({"--bytes", "1MB"}).starts_with("no plan was asked for: give --topology"));
  CHECK(contains(outcome({"--bytes", "1MB", "--workers", "0"}), "--workers"));
  CHECK(contains(outcome({"--bytes", "1MB", "--workers", "2", "--compress", "0.5"}), "--compress"));
  CHECK(contains(outcome({"--bytes", "1MB", "--workers", "2", "--slowest", "0"}), "--slowest"));
  CHECK(contains(outcome({"--bytes", "1MB", "--workers", "2", "--slowest", "nan"}), "--slowest"));
  CHECK(contains(outcome({"--bytes", "1MB", "--workers", "2", "--compress", "nan"}), "--compress"));
  CHECK_EQ(outcome({"--bytes", "1MB", "--topology", "pcie-4gpu", "--servers", "2"}),
           "--servers requires --workers");
  CHECK_EQ(outcome({"--bytes", "1MB", "--workers", "2", "--replicas", "3"}),
           "3 replicas need as many servers: --servers 3");
  CHECK_EQ(outcome({"--bytes", "1MB", "--workers", "2", "--svg", "x.svg"}),
           "--svg draws a topology: give --topology");
  const folder home;
  CHECK(contains(outcome({"--bytes", "1MB", "--topology", home.path}), "Is a directory"));
  CHECK(contains(outcome({"--bytes", "1MB", "--topology", "pcie-4gpu", "--svg",
                          home.path / "missing" / "x.svg"}),
                 "No such file"));
}

TEST_CASE("plan: a pipeline that cannot be predicted gives one line") {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--parts", "20ms/40ms,25ms/50ms", "--batch", "4"});
    return outcome(std::move(more));
  };
  const auto of = [](const std::string& parts) {
    return outcome({"--parts", parts, "--batch", "4", "--micro-batches", "2"});
  };
  CHECK_EQ(of("20ms"), "--parts: '20ms' is not the times of forward and backward of a part, as "
                       "20ms/40ms");
  CHECK_EQ(of("20ms/40ms"), "--parts: a pipeline has 2 to 32 parts, not 1");
  CHECK_EQ(of("20ms/0ms,20ms/40ms"), "--parts: '0ms' is not above 0");
  CHECK_EQ(of("20ms/40ms,20/40ms"), "--parts: '20' is not a time such as 100ms or 1.5s");
  CHECK_EQ(with({"--micro-batches", "8"}),
           "--micro-batches: 8 are more than a batch has samples, --batch 4");
  CHECK(contains(with({"--micro-batches", "0"}), "--micro-batches"));
  CHECK_EQ(with({}), "--parts requires --micro-batches");
  CHECK_EQ(outcome({"--batch", "4"}), "--batch requires --parts");
  CHECK_EQ(with({"--micro-batches", "2", "--activations", "1MB,2MB,3MB"}),
           "--activations: 2 parts have 1 cut, not 3: give one size for all, or one for each");
  CHECK_EQ(with({"--micro-batches", "2", "--activations", "0"}),
           "--activations: '0' is not above 0");
  CHECK_EQ(with({"--micro-batches", "2", "--network", "1Gbit/s"}),
           "--network: give --activations, which the links carry");
  CHECK_EQ(with({"--micro-batches", "2", "--activations", "1e5TB", "--network", "1e-300MB/s"}),
           "--network: a link is too slow for --activations");
  CHECK_EQ(with({"--micro-batches", "2", "--pipeline-order", "gpipe"}),
           "--pipeline-order: 'gpipe' is no order of micro-batches: use fill-drain or 1f1b");
  CHECK_EQ(
    with({"--micro-batches", "2", "--pipeline-order", "fill-drain", "--pipeline-ahead", "1"}),
    "--pipeline-ahead: fill-drain has no part that is ahead");
  CHECK_EQ(with({"--micro-batches", "2", "--topology", "dgx-2"}), "--topology excludes --parts");
  CHECK_EQ(with({"--micro-batches", "2", "--workers", "2"}), "--workers excludes --parts");
  CHECK_EQ(with({"--micro-batches", "2", "--bytes", "1MB"}), "--bytes excludes --parts");
  CHECK_EQ(with({"--micro-batches", "2", "--servers", "2"}), "--servers requires --workers");
  CHECK_EQ(outcome({"--bytes", "1MB", "--topology", "pcie-4gpu", "--network", "1Gbit/s"}),
           "--network requires --workers or --parts");
}

TEST_CASE("plan: the table shows the book's figures and a choice with its reason") {
  const kernels::routing ways(*kernels::preset("pcie-4gpu"));
  const auto text = plan_text(ways, 160e6, kernels::plan_all_reduce(ways, 160e6));
  for (const auto* const part :
       {"  central                                      60.0 ms",
        "  host                                         80.0 ms",
        "* block                                        15.0 ms   15.0 ms    40 MB    240 MB gpu0 "
        "-> "
        "pcie (100 %)",
        "choice: block, 15.0 ms, in chunks of 40 MB",
        "two rings                                  none: ",
        "bandwidth is the limit: gpu0 -> pcie is in use 100 % of the time"}) {
    CAPTURE(part);
    CHECK(contains(text, part));
  }
  CHECK(std::ranges::count(text, '\n') <= 24); // The plan fits one screen.
}

TEST_CASE("plan: this machine is measured") {
  const auto net = planning::find_topology("machine");
  REQUIRE(net);
  CHECK_EQ(problem_of(*net).value_or("none"), "none");
  const kernels::routing ways(*net);
  CHECK(ways.devices() >= 2);
  CHECK_EQ(ways.hosts(), 1);
  CHECK(ways.rate(0, 1) > 1e7); // Any machine adds 10 MB in 1 s.
  CHECK(ways.rate(0, 1) < 1e13);
  CHECK(ways.latency_seconds(0, 1) > 0); // Any machine wakes a thread within 1 s.
  CHECK(ways.latency_seconds(0, 1) < 1);
}

TEST_CASE("plan: the drawing is one SVG with every node and a row for each link in use") {
  const kernels::routing ways(*planning::parse_topology(
    replaced(two_gpus, R"("name": "two GPUs")", R"("name": "a < b & c")"), "x"));
  const auto plans = kernels::plan_all_reduce(ways, 1e6);
  const auto text = planning::drawing(ways, plans[choose(plans)], 1e6);
  CHECK(text.starts_with("<svg "));
  CHECK(text.ends_with("</svg>\n"));
  CHECK(contains(text, "a &lt; b &amp; c: all-reduce of 1 MB"));
  for (const auto* const part :
       {">gpu0<", ">gpu1<", ">cpu<", ">gpu0 -&gt; cpu<", ">cpu -&gt; gpu1<", ">gpu1 -&gt; cpu<",
        ">cpu -&gt; gpu0<", ">16 GB/s<", ">8 GB/s<"})
    CHECK(contains(text, part));
  CHECK_EQ(text.find("nan"), std::string::npos);
}

TEST_CASE("plan: sizes of a parameter server") {
  planning::server_needs needs{.parameter_bytes = 160e6,
                               .workers = 16,
                               .servers = 4,
                               .step_seconds = 0.1,
                               .compress = 4,
                               .network_per_second = 1.25e9,
                               .disk_per_second = 500e6};
  const auto sizes = planning::sizes_of(needs);
  CHECK_EQ(sizes.push_bytes, 40e6);
  CHECK_EQ(sizes.worker_seconds, doctest::Approx(0.16));
  CHECK_EQ(sizes.server_seconds, doctest::Approx(0.64)); // 16 workers * 200 MB / 4 / 1.25 GB/s
  CHECK_EQ(sizes.talk_seconds, doctest::Approx(0.64));
  CHECK_EQ(sizes.worker_rate, doctest::Approx(2e9));
  CHECK_EQ(sizes.servers, 26); // 0.64 s * 4 / 0.1 s
  CHECK_EQ(sizes.read_seconds, doctest::Approx(0.08));
  CHECK_EQ(sizes.refill_seconds, doctest::Approx(0.512));
  CHECK_EQ(sizes.disk_bytes, doctest::Approx(480e6));
  CHECK_EQ(sizes.ring_seconds, doctest::Approx(0.24));

  needs.servers = 8; // The time halves: O(workers / servers).
  CHECK_EQ(planning::sizes_of(needs).server_seconds, doctest::Approx(0.32));
  needs.workers = 32;
  CHECK_EQ(planning::sizes_of(needs).server_seconds, doctest::Approx(0.64));
  needs.state_per_weight = 2;
  CHECK_EQ(planning::sizes_of(needs).disk_bytes, doctest::Approx(3 * 480e6));
  needs.replicas = 2; // Pushes double; recovery copies 2 * 480 MB / 8 from other replicas.
  CHECK_EQ(planning::sizes_of(needs).server_seconds, doctest::Approx(0.768));
  CHECK_EQ(planning::sizes_of(needs).read_seconds, 0);
  CHECK_EQ(planning::sizes_of(needs).refill_seconds, doctest::Approx(0.096));
}

TEST_CASE("plan: the consistency follows communication and the slowest worker") {
  struct row {
    double bytes, slowest;
    std::string consistency, strategy;
  };
  const std::vector<row> rows{
    {1e6, 1,
     "bsp: ", "parameter server: about as fast as"}, // 16 workers, 16 servers, 10 Gbit/s, 100 ms
    {1e6, 1.1, "ssp:3: ", "parameter server: an all-reduce would wait"},
    {1e6, 2, "asp: ", "parameter server: an all-reduce would wait"},
    {30e6, 1, "asp with --pull-ahead 1: ", "parameter server: an all-reduce would wait"},
    {160e6, 1, "asp, but communication takes ", "parameter server: an all-reduce would wait"},
  };
  for (const auto& each : rows) {
    const planning::server_needs needs{.parameter_bytes = each.bytes,
                                       .workers = 16,
                                       .servers = 16,
                                       .network_per_second = 1.25e9,
                                       .disk_per_second = 500e6,
                                       .slowest = each.slowest};
    const auto advice = advice_for(needs, sizes_of(needs));
    CAPTURE(advice.consistency);
    CHECK(advice.consistency.starts_with(each.consistency));
    CAPTURE(advice.strategy);
    CHECK(advice.strategy.starts_with(each.strategy));
  }
  const planning::server_needs one_server{.parameter_bytes = 5e5,
                                          .workers = 8,
                                          .servers = 1,
                                          .network_per_second = 1.25e9,
                                          .disk_per_second = 500e6};
  CHECK(advice_for(one_server, sizes_of(one_server)).strategy.starts_with("all-reduce in a ring"));
  CHECK(contains(planning::sizing_text(one_server), "O(workers / servers)"));
  auto alone = one_server;
  alone.workers = 1; // A ring needs two workers.
  CHECK(advice_for(alone, sizes_of(alone)).strategy.starts_with("parameter server"));
}

TEST_CASE("plan: as many servers as no number of 32 bits tells") {
  const planning::server_needs needs{.parameter_bytes = 1e12,
                                     .workers = 1000,
                                     .step_seconds = 1e-4,
                                     .network_per_second = 1e9,
                                     .disk_per_second = 500e6};
  CHECK(contains(planning::sizing_text(needs), " 20000000000 "));
}

} // namespace troupe::plan_command_test
