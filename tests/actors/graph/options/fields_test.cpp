#include "actors/graph/options/fields.hpp"

#include "actors/graph/field_checks.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/options/field_kinds.hpp"
#include "actors/graph/options/help_text.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fields_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Returns the table of every program with one more row. Its value is kept as servers::shards.
field_table with_own_row() {
  auto table = all_fields();
  table.front().fields.push_back({"--pages",
                                  number(at(&servers::shards), 5, 50),
                                  "Pages of a book",
                                  "servers::pages",
                                  {role::server}});
  return table;
}

run_options parsed(std::vector<std::string> words, const field_table& table = with_own_row()) {
  run_options options;
  CLI::App app;
  declare(app, options, table);
  std::ranges::reverse(words);
  app.parse(words);
  return options;
}

std::string help_of(const field_table& table) {
  run_options options;
  CLI::App app{"Reads.", "reader"};
  format_help(app);
  declare_version(app);
  declare(app, options, table);
  return app.help();
}

plan plan_of(any_store store, const run_options& options) {
  graph g;
  auto model = g.add("model", std::move(store));
  g.add("learners", options.workers_of(100, trainers(to_three))).into(model);
  auto made = lower("tiny", g, options);
  REQUIRE(made);
  return *std::move(made);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream{path} << text;
}

/// Runs a command line of the shell, and returns its output.
std::string output_of(const std::string& command, const std::filesystem::path& folder) {
  REQUIRE(std::system((command + " > " + (folder / "out").string()).c_str()) == 0);
  std::ifstream out{folder / "out"};
  return {std::istreambuf_iterator<char>{out}, {}};
}

} // namespace

TEST_CASE("a_row_is_an_option_with_its_range_and_help") {
  CHECK(parsed({}).servers.shards == 0);
  CHECK(parsed({"--pages", "7"}).servers.shards == 7);
  CHECK(parsed({"--pages", "7"}).given == std::set<std::string>{"--pages"});
  CHECK_THROWS_WITH_AS(parsed({"--pages", "4"}), "--pages: '4' is not a number from 5 to 50",
                       CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--pages", "7"}, all_fields()), CLI::ParseError);
  CHECK(help_of(with_own_row()).find("  --pages UINT:5..50=0") != std::string::npos);
}

TEST_CASE("a_row_has_a_range_for_the_values_of_a_program") {
  run_options options;
  const auto with = [&](std::uint32_t pages) {
    const auto made = plan_of(servers{.tables = {table_of("w", 4)}, .shards = pages}, options);
    const auto fits = check_ranges(made, with_own_row());
    return fits ? "" : fits.error().text;
  };
  CHECK(with(50).empty());
  CHECK(with(51) == "model: servers::pages is 51, which is not from 5 to 50");
}

TEST_CASE("an_option_of_a_row_has_no_effect_if_the_graph_lacks_its_holder_or_sets_it") {
  const auto asked = parsed({"--pages", "7"});
  const auto effect = [&](any_store store) {
    const auto used = check_effects(asked, plan_of(std::move(store), {}), with_own_row());
    return used ? "" : used.error().text;
  };
  CHECK(effect(servers{.tables = {table_of("w", 4)}, .shards = 7}).empty());
  CHECK(effect(servers{.tables = {table_of("w", 4)}})
        == "--pages has no effect: this program sets the servers of model itself");
  CHECK(effect(shared_memory{{table_of("w", 4)}})
        == "--pages has no effect: model is shared memory, without servers");
}

TEST_CASE("a_row_reaches_members_that_make_no_graph") {
  const storage::temporary_directory folder;
  const auto table = with_own_row();
  cluster_file written;
  written.members =
    member_plans_of(plan_of(servers{.tables = {table_of("w", 4)}, .shards = 7}, {}), table);
  REQUIRE(write_cluster_file(folder.path(), written, table));
  const auto read = read_cluster_file(folder.path(), table);
  REQUIRE(read);
  CHECK(read->members.fields.at(role::server).servers.shards == 7);
  CHECK(read->members.fields.at(role::coordinator).servers.shards == 0);
  // A launcher of another version has other fields.
  CHECK(read_cluster_file(folder.path()).error().code == errc::malformed);
  written.members.fields.at(role::server).servers.shards = 4;
  REQUIRE(write_cluster_file(folder.path(), written, table));
  CHECK(read_cluster_file(folder.path(), table).error().code == errc::malformed);
  REQUIRE(write_cluster_file(folder.path(), written));
  CHECK(read_cluster_file(folder.path(), table).error().code == errc::malformed);
}

TEST_CASE("a_row_is_in_the_reference_of_options") {
  const storage::temporary_directory folder;
  write(folder.path() / "help", help_of(with_own_row()));
  write(folder.path() / "reader", "#!/bin/sh\ncat " + (folder.path() / "help").string() + "\n");
  write(folder.path() / "tools",
        "#!/bin/sh\nprintf 'Tools.\\n\\nSubcommands:\\n  none  None\\n'\n");
  for (const auto* const name : {"reader", "tools"})
    std::filesystem::permissions(folder.path() / name, std::filesystem::perms::owner_all);
  const auto page =
    output_of("python3 " TROUPE_SOURCE_DIR "/scripts/options_reference "
                + (folder.path() / "reader").string() + " " + (folder.path() / "tools").string(),
              folder.path());
  CHECK(page.find("* `--pages N` (`5..50`, default `0`): Pages of a book.") != std::string::npos);
}

TEST_CASE("each_option_has_one_row") {
  std::set<std::string> names;
  for (const auto& row : rows_of(all_fields()))
    if (!row.option.empty()) {
      CAPTURE(row.option);
      CHECK(names.insert(row.option).second);
    }
}

TEST_CASE("a_field_reads_what_it_prints") {
  const std::pair<std::string, std::vector<std::string>> cases[] = {
    {"--sync", {"ssp:3", "allreduce", "hogwild"}},
    {"--checkpoint-every", {"1m", "90s", "1500ms", "200clocks", "never"}},
    {"--checkpoint-scrub", {"10m", "1ms", "off"}},
    {"--stragglers", {"off", "rebalance"}},
    {"--compress", {"topk:0.25", "w=int8"}},
    {"--compress-pulls", {"f32", "int8"}},
    {"--kill", {"worker:1@0.5", "model:2@3"}},
    {"--slow", {"worker:1:50", "learners:0:5"}},
    {"--here", {"worker:1,server:0,learners:2"}},
    {"--coordinator-store", {"etcd://a:1,b:2/job", "etcd://a:1"}},
    {"--listen", {"[::1]:4000"}},
    {"--log-level", {"off", "debug"}},
    {"--reads", {"any"}},
    {"--durability", {"log"}},
    {"--lr", {"0.001"}},
    {"--reduce-wait", {"5"}},
    {"--seed", {"18446744073709551615"}},
    {"--delta-pulls", {"true"}},
    {"--no-key-cache", {"true"}},
    {"--simulate", {"true"}}};
  std::set<std::string> tried;
  for (const auto& row : rows_of(all_fields())) {
    CAPTURE(row.option);
    if (const auto shown = row.kind.print({}); !shown.empty() && !row.option.empty()) {
      run_options options;
      REQUIRE(row.kind.take(shown, options));
      CHECK(row.kind.print(options) == shown);
    }
    const auto found = std::ranges::find(cases, row.option,
                                         &std::pair<std::string, std::vector<std::string>>::first);
    if (found == std::end(cases))
      continue;
    tried.insert(row.option);
    for (const auto& word : found->second) {
      run_options options;
      REQUIRE(row.kind.take(word, options));
      CHECK(row.kind.print(options) == word);
    }
  }
  CHECK(tried.size() == std::size(cases));
}

namespace {

/// Returns the fingerprint of a small job; nullopt: its options do not fit.
std::optional<std::uint64_t> fingerprint_with(const std::vector<std::string>& words) {
  const auto options = parsed(words, all_fields());
  const auto made = lower("tiny", tiny_graph(options, 100, to_three), options);
  return made ? std::optional{fingerprint(made->job)} : std::nullopt;
}

/// Returns a text for another value than the usual one; empty: the field is no number.
std::string other_text(const field& row) {
  if (row.option == "--optimizer" || row.option == "--durability")
    return row.option == "--optimizer" ? "adam" : "log";
  run_options options;
  if (row.kind.form.starts_with("UINT") || row.kind.form.starts_with("FLOAT"))
    for (const std::string text : {"2", "1", "0.5"})
      if (row.kind.take(text, options) && row.kind.print(options) != row.kind.print({}))
        return text;
  return {};
}

} // namespace

TEST_CASE("rows_say_which_fields_are_part_of_a_jobs_identity") {
  const auto usual = fingerprint_with({"--sync", "bsp"});
  CHECK(fingerprint_with({"--sync", "asp"}) != usual);
  std::size_t compared = 0;
  for (const auto& row : rows_of(all_fields())) {
    const auto text = other_text(row);
    if (row.option.empty() || text.empty() || !row.traits.needed.empty())
      continue;
    CAPTURE(row.option);
    if (const auto made = fingerprint_with({"--sync", "bsp", row.option, text})) {
      CHECK((made != usual) == row.traits.is_identity);
      ++compared;
    } else {
      CHECK_FALSE(row.traits.is_identity);
    }
  }
  CHECK(compared >= 20);
}

} // namespace fields_test
