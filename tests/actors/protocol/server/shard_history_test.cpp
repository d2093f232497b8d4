// Runs random histories of a shard and its follower. Workers join, die, send again and overtake
// each other. Steps fail, and entries stay pending for long. The head dies or steps down, and
// servers restore. A bookkeeper that shares no code with the shard checks each effect.
#include "actors/protocol/server/shard.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace troupe::shard_history_test {

namespace {

using namespace test;

class dice {
public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  bool percent(std::uint64_t chance) { return below(100) < chance; }

private:
  std::mt19937_64 engine_;
};

job_spec random_job(dice& random) {
  const auto some_ssp = [&] { return ssp(static_cast<std::uint32_t>(random.below(4))); };
  std::vector<consistency> modes;
  switch (random.below(7)) {
  case 0: modes = {bsp()}; break;
  case 1: modes = {bsp(), bsp()}; break;
  case 2: modes = {asp()}; break;
  case 3: modes = {some_ssp()}; break;
  case 4: modes = {some_ssp(), asp(), some_ssp()}; break;
  case 5: modes = {asp(), bsp()}; break;
  default: modes = {bsp(), some_ssp(), some_ssp()};
  }
  job_spec job =
    job_of(modes, static_cast<std::uint32_t>(1 + random.below(4)), 1 + random.below(20));
  job.epochs = 1 + random.below(2);
  return job;
}

/// A batch that a worker is working on.
struct task {
  batch_id batch;
  std::uint64_t clock = 0;
  std::uint64_t base_version = 0;
  bool computed = false;  ///< Pulled; the push was sent.
  bool discarded = false; ///< Counts as pushed, though it is sent again.
};

struct worker {
  worker_id id;
  incarnation_id incarnation;
  bool alive = true;
  enum { away, asked, admitted } standing = away;
  std::uint64_t clock = 0; ///< Clock of the next task; during admission, the promised clock.
  std::deque<task> tasks;
  std::deque<request_token> link; ///< Sent, not delivered.
};

struct request {
  worker* from = nullptr;
  bool is_push = false;
  step_header step;
  std::vector<table_id> tables;
  std::uint64_t base_version = 0;
};

/// A proposed entry. Its gradients alone decide whether the step is applied.
struct logged {
  entry_header what;
  bool is_finite = true;
};

/// Records applied pushes by the rules of the design. Cells are (table, partition, batch).
struct bookkeeper {
  using cell = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
  std::set<cell> applied;
  std::uint64_t version = 0;
  std::uint64_t bsp_clocks = 0;

  bool all_of(const job_spec& job, const std::vector<std::uint32_t>& partitions,
              std::uint64_t batch, bool but_bsp = false) const {
    for (std::uint32_t table = 0; table < job.tables.size(); ++table)
      for (const std::uint32_t p : partitions)
        if (!(but_bsp && job.tables[table].sync.mode == consistency_mode::bsp)
            && !applied.contains({table, p, batch}))
          return false;
    return true;
  }
};

class history {
public:
  explicit history(std::uint64_t seed)
      : random_(seed), job_(random_job(random_)), partitions_{0, 1, 3}, late_(random_.percent(50)) {
    begin(fresh(job_, partitions_));
    for (const table_spec& table : job_.tables) {
      has_bsp_ |= table.sync.mode == consistency_mode::bsp;
      if (table.sync.mode == consistency_mode::ssp)
        staleness_min_ = std::min(staleness_min_.value_or(99), table.sync.staleness_clocks);
    }
    for (std::uint32_t i = 0; i < 1 + random_.below(4); ++i)
      start_worker({i});
  }

  void run() {
    for (int step = 0; !complete(); ++step) {
      REQUIRE_MESSAGE(step < 100'000, "the job does not end");
      act();
    }
    finish();
  }

private:
  // -- events --

  void act() {
    if (late_ && random_.percent(50))
      return replicate();
    const std::uint64_t what = random_.below(1000);
    if (what < 500)
      deliver();
    else if (what < 750)
      work();
    else if (what < 850)
      coordinate();
    else if (what < 950)
      send_desired();
    else if (what < 980)
      wait();
    else if (what < 985)
      request_cut();
    else if (what < 990)
      reconnect(any_worker());
    else if (what < 995 && deaths_left_ > 0)
      die(any_worker());
    else if (what < 998 && restores_left_ > 0)
      restore();
    else if (what == 998 && late_)
      step_down();
    else if (what == 999 && failovers_left_ > 0)
      fail_over();
  }

  // -- the chain: head_done_ <= has_ <= log_.size(), follower_done_ <= head_done_ --

  void begin(const std::vector<shard_partition>& partitions) {
    shard_ = std::make_unique<shard>(job_, generation_, partitions);
    log_.clear();
    head_done_ = 0;
    begin_follower(partitions);
  }

  /// Begins a follower with a copy of the state that the head has applied.
  void begin_follower(const std::vector<shard_partition>& partitions) {
    follower_ = std::make_unique<shard>(job_, generation_, partitions);
    has_ = follower_done_ = head_done_;
    seen_clock_max_ = 0;
  }

  void replicate() {
    switch (random_.below(3)) {
    case 0: return follower_takes();
    case 1: return head_commits();
    default: return follower_commits();
    }
  }

  void follower_takes() {
    if (has_ == log_.size())
      return;
    const entry_header& entry = log_[has_++].what;
    for (const step_header& step : entry.steps)
      seen_clock_max_ = std::max(seen_clock_max_, step.clock + 1);
    follower_->append(entry);
  }

  void head_commits() {
    if (head_done_ == has_)
      return;
    shard_effects effects;
    shard_->commit(effects);
    carry_out(effects);
  }

  void follower_commits() {
    if (follower_done_ == head_done_)
      return;
    shard_effects effects;
    follower_->commit(effects);
    REQUIRE(effects.size() == 1);
    REQUIRE(std::holds_alternative<apply_effect>(effects.front()));
    effects.clear();
    if (log_[follower_done_++].is_finite)
      follower_->applied(effects);
    else
      follower_->discarded({errc::non_finite, "nan"}, effects);
    REQUIRE_MESSAGE(effects.empty(), "a follower talks to somebody");
    if (follower_done_ == head_done_)
      compare();
  }

  void compare() const {
    REQUIRE(follower_->version() == shard_->version());
    REQUIRE(follower_->bsp_clocks() == shard_->bsp_clocks());
    REQUIRE(follower_->batches_applied() == shard_->batches_applied());
    const auto own = shard_->partitions(), others = follower_->partitions();
    for (std::size_t i = 0; i < own.size(); ++i)
      REQUIRE(own[i].applied == others[i].applied);
  }

  /// Makes the head lead. The coordinator tells it which workers have begun to work.
  void lead() {
    for (clock_entry& x : list_) {
      const worker& who = worker_of(x.incarnation);
      x.known |= who.standing == worker::admitted;
      if (x.known)
        x.clock = first_possible_push(who);
    }
    shard_effects effects;
    shard_->set_workers(list_, effects);
    shard_->lead();
    REQUIRE(effects.empty());
    for (const clock_entry& x : shard_->clocks()) {
      worker& who = worker_of(x.incarnation);
      const auto listed = std::find_if(list_.begin(), list_.end(),
                                       [&](const clock_entry& y) { return y.worker == x.worker; });
      if (listed->known)
        continue;
      REQUIRE(x.known);
      promised_[x.incarnation] = x.clock;
      who.clock = std::max(who.clock, x.clock);
    }
  }

  void step_down() {
    shard_effects effects;
    shard_->step_down(effects);
    carry_out(effects);
    REQUIRE_MESSAGE(delivered_.empty(), "step_down() forgot somebody");
    lead();
    for (const auto& who : workers_)
      reconnect(*who);
  }

  /// Replaces a head that dies or is removed. Entries that the follower lacks were final nowhere.
  void fail_over() {
    --failovers_left_;
    while (follower_done_ < head_done_)
      follower_commits();
    if (random_.percent(50)) {
      shard_effects effects;
      shard_->truncate(effects);
      carry_out(effects);
      REQUIRE_MESSAGE(delivered_.empty(), "truncate() forgot somebody");
      REQUIRE(shard_->pending() == 0);
      compare();
    }
    shard_ = std::move(follower_);
    log_.resize(has_);
    answered_max_ = seen_clock_max_;
    lead();
    begin_follower(shard_->partitions());
    shard_effects none;
    follower_->set_workers(list_, none);
    open_.clear();
    delivered_.clear();
    payloads_.clear();
    for (const auto& who : workers_) {
      who->link.clear();
      if (who->alive)
        resend(*who);
    }
  }

  worker& any_worker() { return *workers_[random_.below(workers_.size())]; }

  void start_worker(worker_id id) {
    workers_.push_back(std::make_unique<worker>());
    workers_.back()->id = id;
    workers_.back()->incarnation = {++last_incarnation_};
  }

  void die(worker& who) {
    if (!who.alive)
      return;
    --deaths_left_;
    who.alive = false;
    who.link.clear();
    forget_requests_of(who);
    const bool last =
      std::none_of(workers_.begin(), workers_.end(), [](const auto& x) { return x->alive; });
    if (last || random_.percent(80))
      start_worker(who.id);
  }

  /// Takes a batch and pulls for it, unless the worker still waits for a pull reply. The last
  /// worker alive may have to push all slots of a clock before the first is acknowledged.
  void work() {
    worker& who = any_worker();
    const bool waits = !who.tasks.empty() && !who.tasks.back().computed;
    if (!who.alive || who.standing != worker::admitted || waits || who.tasks.size() > job_.workers)
      return;
    std::vector<batch_id> work = unassigned();
    if (random_.percent(5))
      work = {batch_id{random_.below(job_.batches())}}; // Held by another worker, or done.
    if (work.empty())
      return;
    const std::size_t reach = has_bsp_ ? 1 : std::min<std::size_t>(3, work.size());
    who.tasks.push_back({work[random_.below(reach)], who.clock++});
    send(who, who.tasks.back());
  }

  std::vector<batch_id> unassigned() const {
    std::set<std::uint64_t> taken;
    for (const auto& who : workers_)
      if (who->alive)
        for (const task& x : who->tasks)
          taken.insert(x.batch.value);
    std::vector<batch_id> open;
    for (std::uint64_t b = 0; b < job_.batches(); ++b)
      if (!taken.contains(b) && !book_.all_of(job_, partitions_, b))
        open.push_back({b});
    return open;
  }

  void send(worker& who, const task& what) {
    const request_token token{++last_token_};
    std::vector<table_id> tables;
    for (std::uint32_t i = 0; i < job_.tables.size(); ++i)
      tables.push_back({i});
    if (!what.computed && random_.percent(10))
      tables = {tables[random_.below(tables.size())]};
    open_[token] = {&who,
                    what.computed,
                    {who.id, who.incarnation, generation_, what.batch, what.clock},
                    tables,
                    what.base_version};
    who.link.push_back(token);
  }

  void deliver() {
    worker& who = any_worker();
    if (who.link.empty())
      return;
    const request_token token = who.link.front();
    who.link.pop_front();
    const request what = open_.at(token);
    delivered_.insert(token);
    shard_effects effects;
    if (what.is_push) {
      payloads_.insert(token);
      shard_->push(token, {what.step}, what.tables, what.base_version, effects);
    } else {
      shard_->pull(token, {.step = what.step, .tables = what.tables}, now_, effects);
    }
    carry_out(effects, what.is_push ? &token : nullptr);
  }

  void wait() {
    now_ += std::chrono::milliseconds{200};
    shard_effects effects;
    shard_->tick(now_, effects);
    carry_out(effects);
  }

  void request_cut() {
    shard_effects effects;
    shard_->request_cut(++last_cut_, book_.bsp_clocks + random_.below(2), effects);
    carry_out(effects);
  }

  void forget_requests_of(worker& who) {
    for (auto at = open_.begin(); at != open_.end();) {
      const auto& [token, what] = *at;
      if (what.from != &who) {
        ++at;
        continue;
      }
      if (delivered_.contains(token))
        (at++)->second.from = nullptr; // The shard goes on; the answer is dropped.
      else
        at = open_.erase(at);
    }
  }

  /// Breaks the link; unanswered requests are sent again in order.
  void reconnect(worker& who) {
    if (!who.alive)
      return;
    forget_requests_of(who);
    resend(who);
  }

  void resend(worker& who) {
    who.link.clear();
    for (const task& x : who.tasks)
      send(who, x);
  }

  // -- the coordinator --

  void coordinate() {
    worker& who = any_worker();
    if (!who.alive) {
      const bool listed = std::any_of(list_.begin(), list_.end(), [&](const clock_entry& x) {
        return x.incarnation == who.incarnation;
      });
      if (!listed && workers_.size() > 1 && !referenced(who))
        std::erase_if(workers_, [&](const auto& x) { return x.get() == &who; });
      return;
    }
    const bool work_left = !unassigned().empty();
    if (who.standing == worker::away && work_left) {
      who.standing = worker::asked;
      promised_.erase(who.incarnation);
    } else if (who.standing == worker::admitted && !work_left && who.tasks.empty()) {
      who.standing = worker::away;
    } else if (who.standing == worker::asked && promised_.contains(who.incarnation)) {
      who.standing = worker::admitted;
      // Another server may have promised a later clock.
      who.clock = std::max(who.clock, promised_[who.incarnation] + random_.below(2));
    }
  }

  bool referenced(const worker& who) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](const auto& x) { return x.second.from == &who; });
  }

  void send_desired() {
    std::vector<clock_entry> list;
    for (const auto& who : workers_) {
      const bool replaced = std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
        return other->id == who->id && who->incarnation < other->incarnation;
      });
      if (who->standing != worker::away && !replaced && (who->alive || random_.percent(50)))
        list.push_back({who->id, who->incarnation, who->clock, who->standing == worker::admitted});
    }
    const std::vector<clock_entry> before = std::exchange(list_, list);
    give_list();
    for (const clock_entry& now : shard_->clocks()) {
      const auto is_now = [&](const clock_entry& x) { return x.incarnation == now.incarnation; };
      const auto asked = std::find_if(list_.begin(), list_.end(), is_now);
      if (!asked->known && std::none_of(before.begin(), before.end(), is_now)) {
        CHECK(now.known);
        CHECK(now.clock == promised_.at(now.incarnation));
      }
    }
  }

  void give_list() {
    for (clock_entry& x : list_) {
      worker& who = worker_of(x.incarnation);
      if (!x.known && !promised_.contains(x.incarnation))
        promised_[x.incarnation] =
          staleness_min_ && answered_max_ > *staleness_min_ ? answered_max_ - *staleness_min_ : 0;
      if (!x.known)
        who.clock = std::max(who.clock, promised_[x.incarnation]);
      else
        x.clock = first_possible_push(who);
    }
    std::erase_if(promised_, [&](const auto& promise) {
      return std::none_of(list_.begin(), list_.end(),
                          [&](const clock_entry& x) { return x.incarnation == promise.first; });
    });
    shard_effects effects;
    shard_->set_workers(list_, effects);
    carry_out(effects);
    effects.clear();
    follower_->set_workers(list_, effects);
    REQUIRE(effects.empty());
  }

  /// Returns the first clock whose push can still change the values.
  std::uint64_t first_possible_push(const worker& who) const {
    for (const task& x : who.tasks)
      if (!x.discarded && !book_.all_of(job_, partitions_, x.batch.value, true))
        return x.clock;
    return who.clock;
  }

  worker& worker_of(incarnation_id incarnation) {
    return **std::find_if(workers_.begin(), workers_.end(),
                          [&](const auto& x) { return x->incarnation == incarnation; });
  }

  /// The server dies. In bsp every partition rolls back to the last cut under a new generation. In
  /// other modes some partitions do, and the batches they lack are done again.
  void restore() {
    --restores_left_;
    std::vector<shard_partition> next = shard_->partitions();
    const auto saved = snapshot_ ? snapshot_->partitions : fresh(job_, partitions_);
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (!has_bsp_ && random_.percent(50))
        continue;
      next[i] = saved[i];
      std::erase_if(book_.applied, [&](const bookkeeper::cell& x) {
        return std::get<1>(x) == partitions_[i]
               && !(snapshot_ && snapshot_->book.applied.contains(x));
      });
    }
    book_.version = 0;
    for (const shard_partition& p : next)
      book_.version = std::max(book_.version, p.version);
    if (has_bsp_) {
      ++generation_.value;
      book_.bsp_clocks = snapshot_ ? snapshot_->book.bsp_clocks : 0;
    }
    open_.clear();
    delivered_.clear();
    payloads_.clear();
    promised_.clear();
    answered_max_ = 0;
    begin(next);
    REQUIRE(shard_->bsp_clocks() == book_.bsp_clocks);
    for (const auto& who : workers_) {
      if (has_bsp_)
        who->tasks.clear();
      who->link.clear();
    }
    give_list();
    for (const auto& who : workers_)
      if (who->alive)
        resend(*who);
  }

  // -- effects, and what must hold for each --

  void carry_out(shard_effects& effects, const request_token* pushed = nullptr) {
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const shard_effect effect = effects[i];
      const bool is_last = i + 1 == effects.size();
      std::visit([&](const auto& x) { judge(x, effects); }, effect);
      if (std::holds_alternative<propose_effect>(effect)
          || std::holds_alternative<apply_effect>(effect))
        REQUIRE_MESSAGE(is_last, "more effects after one that is to be the last");
    }
    if (pushed != nullptr)
      drop_payload_unless_held(*pushed);
  }

  void judge(const propose_effect& effect, shard_effects& more) {
    REQUIRE(effect.pushes.size() == effect.entry.steps.size());
    for (std::size_t i = 0; i < effect.pushes.size(); ++i) {
      const request_token token = effect.pushes[i];
      REQUIRE_MESSAGE(payloads_.contains(token), "the payload is not kept");
      drop_payload_unless_held(token);
      REQUIRE(effect.entry.steps[i] == open_.at(token).step);
    }
    if (!is_bsp(effect.entry.tables.front()))
      CHECK(effect.entry.base_version == open_.at(effect.pushes.front()).base_version);
    log_.push_back({effect.entry, !random_.percent(2)});
    if (late_)
      return;
    follower_takes();
    shard_->commit(more);
  }

  void judge(const apply_effect& effect, shard_effects& more) {
    const auto& [entry, is_finite] = log_.at(head_done_++);
    REQUIRE(effect.tables == entry.tables);
    REQUIRE(effect.pushes == entry.steps.size());
    const bool clock = is_bsp(effect.tables.front());
    if (clock)
      judge_clock(effect, entry);
    else
      judge_arrival(effect, entry);
    std::set<bookkeeper::cell> now;
    for (const step_header& step : entry.steps)
      for (const table_id table : effect.tables)
        for (const std::uint32_t p : partitions_) {
          const bookkeeper::cell cell{table.value, p, step.batch.value};
          const bool skip =
            std::count(effect.skip.begin(), effect.skip.end(), std::pair{table, partition_id{p}})
            > 0;
          REQUIRE_MESSAGE(book_.applied.contains(cell) == skip, "applied twice, or left out");
          now.insert(cell);
        }
    if (!is_finite) {
      for (const step_header& step : entry.steps)
        for (const auto& who : workers_)
          for (task& x : who->tasks)
            x.discarded |= x.batch == step.batch;
      shard_->discarded({errc::non_finite, "nan"}, more);
    } else {
      book_.applied.merge(now);
      ++book_.version;
      book_.bsp_clocks += clock ? 1 : 0;
      shard_->applied(more);
    }
    if (!late_)
      follower_commits();
  }

  void judge_arrival(const apply_effect& effect, const entry_header& entry) {
    REQUIRE(entry.steps.size() == 1);
    const std::uint64_t base = entry.base_version;
    CHECK(effect.staleness_versions == (book_.version > base ? book_.version - base : 0));
    for (const table_id table : effect.tables)
      REQUIRE_FALSE(is_bsp(table));
  }

  void judge_clock(const apply_effect& effect, const entry_header& entry) {
    for (const table_id table : effect.tables)
      REQUIRE(is_bsp(table));
    const std::uint64_t first = bsp_first(job_, book_.bsp_clocks).value;
    REQUIRE(entry.steps.size() == bsp_end(job_, book_.bsp_clocks).value - first);
    for (std::size_t i = 0; i < entry.steps.size(); ++i)
      REQUIRE_MESSAGE(entry.steps[i].batch.value == first + i, "not in slot order");
  }

  void judge(const acknowledge_effect& effect, shard_effects&) {
    const request what = close(effect.push);
    CHECK(effect.push_reply.version == book_.version);
    REQUIRE_MESSAGE(book_.all_of(job_, partitions_, what.step.batch.value),
                    "acknowledged before it was applied");
    if (what.from != nullptr)
      std::erase_if(what.from->tasks, [&](const task& x) { return x.clock == what.step.clock; });
  }

  void judge(const refuse_effect& effect, shard_effects&) {
    const request what = close(effect.request);
    if (what.from == nullptr)
      return;
    worker& who = *what.from;
    const auto at = std::find_if(who.tasks.begin(), who.tasks.end(),
                                 [&](const task& x) { return x.clock == what.step.clock; });
    REQUIRE(at != who.tasks.end());
    REQUIRE(effect.why.code != errc::malformed);
    REQUIRE(effect.why.code != errc::rolled_back);
    if (effect.why.code == errc::not_yet) {
      // The worker gives the batch back and looks for an earlier one.
      who.clock = at->clock;
      who.tasks.erase(at);
    } else if (effect.why.code != errc::fenced) {
      send(who, *at);
    }
  }

  void judge(const answer_effect& effect, shard_effects&) {
    const request what = close(effect.pull);
    CHECK(effect.version == book_.version);
    std::vector<table_id> previous;
    for (const table_id table : what.tables) {
      const consistency& sync = job_.tables[table.value].sync;
      if (sync.mode == consistency_mode::ssp)
        judge_ssp(what.step, sync.staleness_clocks);
      if (sync.mode != consistency_mode::bsp)
        continue;
      const std::uint64_t clock = bsp_clock(job_, what.step.batch);
      REQUIRE_MESSAGE(book_.bsp_clocks >= clock, "answered before its clock");
      if (book_.bsp_clocks == clock + 1)
        previous.push_back(table);
    }
    CHECK(effect.previous == previous);
    if (what.from == nullptr)
      return;
    for (task& x : what.from->tasks)
      if (x.clock == what.step.clock) {
        x.computed = true;
        x.base_version = effect.version;
        send(*what.from, x);
      }
  }

  void judge_ssp(const step_header& step, std::uint32_t staleness) {
    answered_max_ = std::max(answered_max_, step.clock);
    for (const clock_entry& x : list_)
      REQUIRE_MESSAGE(first_possible_push(worker_of(x.incarnation)) + staleness >= step.clock,
                      "staleness bound broken by worker " << x.worker.value);
  }

  void judge(const cut_effect& effect, shard_effects&) {
    CHECK(effect.checkpoint == last_cut_);
    snapshot_ = snapshot{shard_->partitions(), book_};
  }

  request close(request_token token) {
    REQUIRE_MESSAGE(delivered_.erase(token) == 1, "answered twice, or never asked");
    const request what = open_.at(token);
    open_.erase(token);
    payloads_.erase(token);
    return what;
  }

  void drop_payload_unless_held(request_token token) {
    if (!shard_->holds(token))
      payloads_.erase(token);
  }

  // -- the end --

  bool complete() const {
    for (std::uint64_t b = 0; b < job_.batches(); ++b)
      if (!book_.all_of(job_, partitions_, b))
        return false;
    return true;
  }

  void finish() {
    while (follower_done_ < head_done_)
      follower_commits();
    compare();
    CHECK(shard_->batches_applied() == batch_set{batch_id{job_.batches()}});
    CHECK(shard_->version() == book_.version);
    CHECK(shard_->bsp_clocks() == book_.bsp_clocks);
    CHECK(shard_->pull_clock_max() == answered_max_);
    CHECK(shard_->counters().applied == shard_->counters().staleness_versions.count());
    CHECK(shard_->counters().applied == shard_->counters().staleness_clocks.count());
    CHECK(payloads_.empty());
    now_ += std::chrono::seconds{1};
    shard_effects effects;
    shard_->tick(now_, effects);
    for (const shard_effect& effect : effects)
      close(std::get<refuse_effect>(effect).request);
    REQUIRE_MESSAGE(delivered_.empty(), "a request was never answered");
  }

  bool is_bsp(table_id table) const {
    return job_.tables[table.value].sync.mode == consistency_mode::bsp;
  }

  struct snapshot {
    std::vector<shard_partition> partitions;
    bookkeeper book;
  };

  dice random_;
  job_spec job_;
  std::vector<std::uint32_t> partitions_;
  generation_id generation_{1};
  bool late_; ///< Entries become final some time after their proposal, not at once.
  std::unique_ptr<shard> shard_;
  std::unique_ptr<shard> follower_;
  std::deque<logged> log_;
  std::size_t has_ = 0; ///< Entries that the follower has.
  std::size_t head_done_ = 0, follower_done_ = 0;
  std::uint64_t seen_clock_max_ = 0; ///< Largest next clock in the follower's entries.
  bool has_bsp_ = false;
  std::optional<std::uint32_t> staleness_min_;
  time_point now_{0};

  std::vector<std::unique_ptr<worker>> workers_;
  std::vector<clock_entry> list_; ///< The list of workers that the shard has.
  std::map<incarnation_id, std::uint64_t> promised_;
  std::uint64_t answered_max_ = 0;
  std::map<request_token, request> open_;
  std::set<request_token> delivered_;
  std::set<request_token> payloads_; ///< Pushes whose payload a caller would keep.
  bookkeeper book_;
  std::optional<snapshot> snapshot_;

  std::uint64_t last_incarnation_ = 0;
  std::uint64_t last_token_ = 0;
  std::uint64_t last_cut_ = 0;
  int deaths_left_ = 4;
  int restores_left_ = 2;
  int failovers_left_ = 3;
};

} // namespace

TEST_CASE("random histories keep the promises of the shard") {
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    history{seed}.run();
  }
}

} // namespace troupe::shard_history_test
