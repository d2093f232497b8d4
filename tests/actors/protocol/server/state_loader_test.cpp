#include "actors/protocol/server/state_loader.hpp"

#include "tests/actors/host_effect_lines.hpp"

#include "doctest/doctest.h"

#include <optional>
#include <string>
#include <vector>

namespace troupe::state_loader_test {

namespace {

using lines = std::vector<std::string>;

chain_config config(std::uint64_t number) {
  return {{number}, {number}, {{role::server, 0, {10}}}, std::nullopt};
}

/// The base of server 0 in generation 1 of history 1.
constexpr storage::base_id kept{3, {1}, {1}, false};

struct fixture {
  explicit fixture(bool has_checkpoints = true) : loader({0}, has_checkpoints) {}

  /// Begins generation 2 after generation 1, with a log.
  void begin(std::uint64_t checkpoint, bool is_durable = true, bool keeps_states = true) {
    loader.begin({{2}, {1}, checkpoint, config(1), {{0}, {1}}, is_durable, keeps_states});
  }
  lines load() {
    return test::lines_of([&](host_effects& effects) { loader.load(effects); });
  }
  lines recalled(const std::optional<recalled_state>& found) {
    return test::lines_of([&](host_effects& effects) { loader.recalled(1, found, effects); });
  }
  lines recall_failed(const failure& why) {
    return test::lines_of([&](host_effects& effects) { loader.recalled(1, why, effects); });
  }
  lines loaded(std::uint64_t load = 1) {
    return test::lines_of([&](host_effects& effects) {
      is_loaded = loader.loaded(load, {shard_partition{{0}, 5, {}}}, effects);
    });
  }
  lines failed(errc code, const std::string& why) {
    return test::lines_of([&](host_effects& effects) { loader.failed(1, {code, why}, effects); });
  }

  state_loader loader;
  bool is_loaded = false;
};

} // namespace

TEST_CASE("without a log a generation begins with its checkpoint, or with initial values") {
  fixture f;
  f.begin(7, false);
  CHECK(f.load() == lines{"load 1 checkpoint 7"});
  f.begin(0, false);
  CHECK(f.load() == lines{"load 2 checkpoint 0"});
}

TEST_CASE("a loaded state is handed out once") {
  fixture f;
  f.begin(7, false);
  f.load();
  CHECK(f.loaded().empty());
  CHECK(f.is_loaded);
  CHECK(f.loader.held().size() == 1);
  CHECK(f.loader.take().size() == 1);
  CHECK(f.loader.take().empty());
}

TEST_CASE("the outcome of an earlier load changes nothing") {
  fixture f;
  f.begin(7, false);
  f.load();
  f.begin(7, false);
  f.load();
  CHECK(f.loaded(1).empty());
  CHECK_FALSE(f.is_loaded);
  CHECK(f.failed(errc::damaged, "bad").empty());
  CHECK_FALSE(f.loader.why_failed());
  f.loaded(2);
  CHECK(f.is_loaded);
}

TEST_CASE("a local state is replayed where it has all that was acknowledged") {
  fixture f;
  f.begin(7);
  CHECK(f.load() == lines{"recall 1"});
  SUBCASE("it has") {
    CHECK(f.recalled(recalled_state{kept, 2}) == lines{"replay 1"});
    CHECK(f.loaded() == lines{"note: recovered from its local state, 2 entries of its log"});
    CHECK(f.loader.recovered());
  }
  SUBCASE("it is of another history") {
    CHECK(f.recalled(recalled_state{{3, {9}, {1}, false}, 2})
          == lines{"note: no local state of this history; it begins with checkpoint 7",
                   "load 1 checkpoint 7"});
  }
  SUBCASE("it is of an earlier generation") {
    CHECK(f.recalled(recalled_state{{3, {1}, {0}, false}, 2}).back() == "load 1 checkpoint 7");
  }
  SUBCASE("there is none") { CHECK(f.recalled(std::nullopt).back() == "load 1 checkpoint 7"); }
  SUBCASE("it cannot be read") {
    CHECK(f.recall_failed({errc::io_failed, "no disk"})
          == lines{"note: no disk; it begins with checkpoint 7", "load 1 checkpoint 7"});
  }
  SUBCASE("its log cannot be replayed") {
    f.recalled(recalled_state{kept, 2});
    CHECK(f.failed(errc::damaged, "bad log").back() == "load 1 checkpoint 7");
    CHECK(f.loaded().empty());
    CHECK_FALSE(f.loader.recovered());
  }
}

TEST_CASE("a server that keeps no states begins with the checkpoint") {
  fixture f;
  f.begin(0, true, false);
  CHECK(f.load()
        == lines{"note: no local state fits this start; it begins with initial values",
                 "load 1 checkpoint 0"});
}

TEST_CASE("a checkpoint that cannot be read is named, another failure is not its own") {
  for (const auto code : {errc::damaged, errc::io_failed, errc::wrong_job}) {
    CAPTURE(to_string(code));
    fixture f;
    f.begin(7, false);
    f.load();
    CHECK(f.failed(code, "bad") == lines{"report"});
    CHECK(f.loader.why_failed().value().text == "bad");
    CHECK(f.loader.unreadable() == (code == errc::wrong_job ? 0 : 7));
    f.begin(6, false);
    CHECK_FALSE(f.loader.why_failed());
    CHECK(f.loader.unreadable() == 0);
  }
}

TEST_CASE("without checkpoints a generation that has one cannot begin") {
  fixture f{false};
  f.begin(7, false);
  CHECK(f.load() == lines{"report"});
  CHECK(f.loader.why_failed().value().text == "there are no checkpoints to restore from");
  CHECK(f.loader.unreadable() == 0);
}

TEST_CASE("a joiner keeps a past of its generation alone, and loads nothing") {
  for (const std::uint64_t generation : {2, 1}) {
    CAPTURE(generation);
    fixture f;
    f.begin(7);
    const auto recall =
      test::lines_of([&](host_effects& effects) { f.loader.recall_past(effects); });
    CHECK(recall == lines{"recall 1"});
    CHECK(f.loader.recalls_past());
    CHECK(f.recalled(recalled_state{{3, {1}, {generation}, false}, 0})
          == (generation == 2 ? lines{"keep past"} : lines{}));
    CHECK_FALSE(f.loader.recalls_past());
  }
}

} // namespace troupe::state_loader_test
