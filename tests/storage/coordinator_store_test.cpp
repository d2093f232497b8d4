#include "storage/coordinator_store.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <utility>

namespace troupe::storage::coordinator_store_test {

namespace fs = std::filesystem;

namespace {

std::unique_ptr<coordinator_store> open_store(const fs::path& directory) {
  auto store = coordinator_store::open(directory);
  REQUIRE_MESSAGE(store, (store ? "" : store.error().text));
  return *std::move(store);
}

coordinator_state state_of(std::uint64_t term, generation_id generation, std::uint64_t job,
                           std::vector<shard_id> shard_of) {
  coordinator_state made;
  made.term = term;
  made.generation = generation;
  made.job = job;
  made.shard_of = std::move(shard_of);
  return made;
}

/// Saves growing terms until killed; writes each saved term to `to`.
[[noreturn]] void save_for_ever(const fs::path& directory, int to) {
  ::alarm(30); // A child that hangs is killed.
  const auto store = coordinator_store::open(directory);
  for (std::uint64_t term = 1; store; ++term) {
    const auto before = (*store)->load();
    if (!before)
      break;
    if (!(*store)->save(state_of(before->term + 1, {term}, 5, std::vector(64, shard_id{3}))))
      break;
    const auto saved = before->term + 1;
    (void)!::write(to, &saved, sizeof saved);
  }
  ::_exit(1);
}

} // namespace

TEST_CASE("a state that is forgotten is gone, and only that") {
  const temporary_directory home;
  CHECK(coordinator_store::forget(home.path()));
  CHECK(fs::is_empty(home.path()));
  REQUIRE(open_store(home.path())->save(state_of(4, {2}, 77, {{0}})));
  std::ofstream{home.path() / "coordinator" / "notes"} << "mine";
  {
    const auto used = open_store(home.path());
    CHECK(coordinator_store::forget(home.path()).error().code == errc::in_use);
  }
  REQUIRE(coordinator_store::forget(home.path()));
  CHECK(open_store(home.path())->load()->term == 0);
  CHECK(fs::exists(home.path() / "coordinator" / "notes"));
}

TEST_CASE("a state that was saved is there after a restart") {
  const temporary_directory home;
  const member_id head{role::server, 0, {77}}, tail{role::server, 1, {78}};
  const chain_config with_joiner{{8}, {3}, {head, tail}, member_id{role::server, 2, {79}}};
  const std::vector<chain_metadata> records{
    {with_joiner, 12, chain_config{{9}, {3}, {tail}, {}}},
    {{{4}, {3}, {tail}, {}}, 0, with_joiner},
    {},
  };
  {
    const auto store = open_store(home.path());
    const auto fresh = store->load();
    REQUIRE(fresh);
    CHECK(fresh->term == 0);
    CHECK(fresh->job == 0);
    REQUIRE(store->save(state_of(4, {2}, 77, {{0}, {1}, {1}})));
    auto next = state_of(5, {3}, 77, {{1}, {0}});
    next.committed = 12;
    next.chains = records;
    next.servers = {{0}, {7}};
    next.draining = {{2}, {4}};
    next.rolling_back = true;
    REQUIRE(store->save(next));
  }
  const auto state = open_store(home.path())->load();
  REQUIRE(state);
  CHECK(state->term == 5);
  CHECK(state->generation == generation_id{3});
  CHECK(state->job == 77);
  CHECK(state->committed == 12);
  CHECK(state->chains == records);
  CHECK(state->servers == std::set<server_id>{{0}, {7}});
  CHECK(state->draining == std::set<server_id>{{2}, {4}});
  CHECK(state->rolling_back);
  CHECK(state->shard_of == std::vector<shard_id>{{1}, {0}});
}

TEST_CASE("one coordinator at a time") {
  const temporary_directory home;
  const auto store = open_store(home.path());
  const auto second = coordinator_store::open(home.path());
  REQUIRE(!second);
  CHECK(second.error().code == errc::in_use);
  CHECK(second.error().text.find("pid " + std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("what was saved survives kill -9 at any moment") {
  const temporary_directory home;
  std::uint64_t saved = 0;
  for (int round = 0; round < 10; ++round) {
    int terms[2];
    REQUIRE(::pipe(terms) == 0);
    const auto child = ::fork();
    if (child == 0)
      save_for_ever(home.path(), terms[1]);
    ::close(terms[1]);
    std::uint64_t term = 0;
    for (int i = 0; i < 3 + round; ++i)
      if (::read(terms[0], &term, sizeof term) == sizeof term)
        saved = term;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(terms[0], &term, sizeof term) == sizeof term)
      saved = term;
    ::close(terms[0]);
    // A child reads, because RocksDB's threads would not survive the fork of the next round.
    const auto reader = ::fork();
    if (reader == 0) {
      ::alarm(30);
      const auto store = coordinator_store::open(home.path());
      const auto state = store ? (*store)->load() : coordinator_state{};
      ::_exit(store && state && state->term >= saved && state->term <= saved + 1 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(reader, &status, 0);
    REQUIRE(status == 0);
  }
  CHECK(saved >= 30);
}

TEST_CASE("a save that a kill cut off is as if it had not begun") {
  const temporary_directory home;
  {
    const auto store = open_store(home.path());
    REQUIRE(store->save(state_of(4, {2}, 77, {{0}, {1}})));
    REQUIRE(store->save(state_of(5, {2}, 77, {{0}, {1}})));
  }
  for (const auto& entry : fs::directory_iterator{home.path() / "coordinator/db"})
    if (entry.path().extension() == ".log" && entry.file_size() > 0)
      fs::resize_file(entry.path(), entry.file_size() - 3);
  CHECK(open_store(home.path())->load()->term == 4);
}

TEST_CASE("a run that resumes has not the servers that were added and drained, and all else") {
  const temporary_directory home;
  CHECK(coordinator_store::prepare_resume(home.path()));
  auto state = state_of(4, {2}, 77, {{0}, {1}});
  state.servers = {{0}, {7}};
  state.draining = {{7}};
  REQUIRE(open_store(home.path())->save(state));
  REQUIRE(coordinator_store::prepare_resume(home.path()));
  const auto found = open_store(home.path())->load();
  CHECK(found->servers.empty());
  CHECK(found->draining.empty());
  CHECK(found->term == 4);
  CHECK(found->shard_of == state.shard_of);
}

TEST_CASE("a damaged store is reported, not started from nothing") {
  const temporary_directory home;
  REQUIRE(open_store(home.path())->save(state_of(4, {2}, 77, {{0}, {1}})));
  for (const auto& entry : fs::directory_iterator{home.path() / "coordinator/db"}) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0)
      continue;
    std::fstream file{entry.path(), std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(30);
    file.put('\x55');
  }
  const auto refused = coordinator_store::open(home.path());
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::damaged);
}

} // namespace troupe::storage::coordinator_store_test
