// Runs random histories of a chain of three replicas. Messages are lost, late and doubled. Servers
// die, or are cut off and come back with their state. Workers push to the server that they believe
// to lead. A coordinator of a few lines chooses the members.
#include "tests/actors/replica_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace troupe::replica_history_test {

namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr std::uint32_t server_count = 3;

/// Returns how often each table group has applied each batch, from the list of steps.
std::map<std::pair<std::string, std::string>, int> applied_in(const std::vector<std::string>& all) {
  std::map<std::pair<std::string, std::string>, int> counts; // (tables, batch)
  for (const std::string& step : all) {
    if (step.starts_with("not"))
      continue;
    const auto colon = step.find(':');
    const std::string tables = step.substr(0, colon);
    for (std::size_t at = colon + 1; at != std::string::npos;) {
      const auto next = step.find(' ', at + 1);
      ++counts[{tables, step.substr(at, next == std::string::npos ? next : next - at)}];
      at = next;
    }
  }
  return counts;
}

class world {
public:
  world(std::uint64_t seed, std::vector<consistency> modes)
      : random_(seed), job_(job_of(modes, 2, 150)), is_mixed_(modes.size() > 1) {
    for (std::uint32_t i = 0; i < server_count; ++i)
      nodes_.push_back(make(server(i), true));
    record_.active = config_of(1, {server(0), server(1), server(2)});
    last_config_ = 1;
    quiet_after_ = 3000 + static_cast<int>(below(2000));
  }

  void run() {
    for (int i = 0; !done(); ++i) {
      REQUIRE_MESSAGE(i < 100'000, "it does not end: " << text());
      is_quiet_ = i >= quiet_after_;
      now_ += std::chrono::milliseconds{below(8)};
      for (auto& x : nodes_)
        x->decide_at.now = now_;
      act();
    }
    judge_end();
  }

private:
  struct node {
    node(const job_spec& job, member_id who, bool starts_generation)
        : decide_at(job, who, starts_generation) {}
    replica_node decide_at;
    bool is_cut = false; ///< Only workers reach this server, and its messages are lost.
    time_point cut_at{0};
    time_point heard_at{0}; ///< When the coordinator last heard from this server.
    const member_id& id() const { return decide_at.self; }
  };
  struct open_request {
    std::size_t node = 0;
    std::uint64_t batch = 0;
    bool is_pull = false;
    std::uint64_t version_min = 0;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool percent(std::uint64_t chance) { return !is_quiet_ && below(100) < chance; }

  std::unique_ptr<node> make(member_id who, bool starts_generation) {
    auto made = std::make_unique<node>(job_, who, starts_generation);
    auto& of = made->decide_at;
    of.now = now_;
    of.list({member(0), member(1)});
    of.on_told = [this, &of](const shard_effect& effect) { hear(of, effect); };
    return made;
  }

  // -- events --

  void act() {
    switch (below(12)) {
    case 0:
    case 1:
    case 2: return push();
    case 3: return pull();
    case 4: return coordinate();
    case 5: return give_desired();
    case 6: return tick();
    case 7:
      if (!is_quiet_ && below(40) == 0)
        return below(2) == 0 ? die() : cut_off();
      return;
    default: return deliver();
    }
  }

  void deliver() {
    for (auto& x : nodes_) {
      auto& sent = x->decide_at.sent;
      for (; !sent.empty(); sent.pop_front())
        if (!x->is_cut)
          mail_.push_back(std::move(sent.front()));
    }
    for (auto count = below(30); count > 0 && !mail_.empty(); --count)
      deliver_one();
    judge_prefixes();
  }

  void deliver_one() {
    const auto reach = std::min<std::uint64_t>(mail_.size(), is_quiet_ ? 1 : 4);
    const auto at = mail_.begin() + static_cast<std::ptrdiff_t>(below(reach));
    const sent_message what = *at;
    if (!percent(10)) // Otherwise it is delivered again.
      mail_.erase(at);
    node* const to = find(what.to);
    if (to != nullptr && !to->is_cut && !percent(10))
      to->decide_at.receive(what);
  }

  node* find(const member_id& who) {
    for (auto& x : nodes_)
      if (x->id() == who)
        return x.get();
    return nullptr;
  }

  void tick() { nodes_[below(nodes_.size())]->decide_at.tick(); }

  std::size_t believed_head() {
    if (percent(10))
      return below(nodes_.size());
    return record_.active.members.front().index;
  }

  void push() {
    std::uint64_t batch = next_batch();
    const auto where = believed_head();
    const auto worker = static_cast<std::uint32_t>(below(2));
    const std::uint64_t base = percent(4) ? bad_base : 0;
    open_[++last_token_] = {where, batch};
    nodes_[where]->decide_at.push(last_token_,
                                  gradient_of(job_, worker, batch, clocks_[worker]++, base));
  }

  /// Returns one of the first three unacknowledged batches, and now and then any batch.
  std::uint64_t next_batch() {
    if (percent(15))
      return below(job_.batches());
    std::uint64_t skip = below(3);
    std::uint64_t found = 0;
    for (std::uint64_t b = 0; b < job_.batches(); ++b)
      if (!acknowledged_.contains(b)) {
        found = b;
        if (skip-- == 0)
          break;
      }
    return found;
  }

  void pull() {
    const auto where = believed_head();
    open_[++last_token_] = {where, 0, true, version_told_};
    nodes_[where]->decide_at.pull(last_token_, {});
  }

  void hear(const replica_node& by, const shard_effect& effect) {
    if (const auto* ack = std::get_if<acknowledge_effect>(&effect)) {
      const auto request = open_.extract(ack->push.value);
      REQUIRE_FALSE(request.empty());
      acknowledged_.insert(request.mapped().batch);
      version_told_ = std::max(version_told_, ack->push_reply.version);
      judge_acknowledged(by, request.mapped().batch, ack->push_reply.version);
    } else if (const auto* answer = std::get_if<answer_effect>(&effect)) {
      const auto request = open_.extract(answer->pull.value);
      REQUIRE_FALSE(request.empty());
      REQUIRE_MESSAGE(answer->version >= request.mapped().version_min, "an old value was read");
      version_told_ = std::max(version_told_, answer->version);
    } else if (const auto* rejection = std::get_if<refuse_effect>(&effect)) {
      REQUIRE(open_.erase(rejection->request.value) == 1);
    }
  }

  void forget_requests_at(std::size_t index) {
    std::erase_if(open_, [&](const auto& x) { return x.second.node == index; });
  }

  // -- faults: one member that holds all of the state stays --

  bool may_lose_one() const {
    std::size_t good = 0;
    for (const auto& who : record_.active.members)
      for (const auto& x : nodes_)
        good += x->id() == who && !x->is_cut ? 1 : 0;
    return good == record_.active.members.size() && good >= 2 && !record_.proposed;
  }

  void die() {
    if (!may_lose_one())
      return;
    const auto index = static_cast<std::uint32_t>(below(server_count));
    if (nodes_[index]->is_cut)
      return;
    forget_requests_at(index);
    nodes_[index] = make(server(index, ++last_incarnation_), false);
  }

  void cut_off() {
    if (!may_lose_one())
      return;
    auto& x = *nodes_[below(server_count)];
    x.is_cut = true;
    x.cut_at = now_;
    ++cuts_;
  }

  // -- the coordinator --

  bool is_gone(const member_id& who) {
    const node* const x = find(who);
    return x == nullptr || (x->is_cut && now_ - x->cut_at > 1300ms);
  }

  void coordinate() {
    for (auto& x : nodes_)
      if (x->is_cut && now_ - x->cut_at > (is_quiet_ ? 1400ms : 4000ms))
        x->is_cut = false;
    for (auto& x : nodes_)
      if (!x->is_cut)
        x->heard_at = now_;
    if (record_.proposed && any_gone(*record_.proposed))
      record_.proposed.reset();
    if (record_.proposed)
      return activate_if_sealed();
    propose();
  }

  bool any_gone(const chain_config& what) {
    return std::ranges::any_of(what.members, [&](const auto& who) { return is_gone(who); })
           || (what.joiner && is_gone(*what.joiner));
  }

  void activate_if_sealed() {
    const auto has_sealed = [&](const member_id& who) {
      const node* const x = find(who);
      return is_gone(who)
             || (!x->is_cut && x->decide_at.decide.status().sealed >= record_.proposed->config);
    };
    const bool all = std::ranges::all_of(record_.active.members, has_sealed)
                     && std::ranges::all_of(record_.proposed->members, has_sealed);
    if (!all)
      return;
    record_.active = *record_.proposed;
    record_.proposed.reset();
  }

  void propose() {
    auto next = record_.active;
    if (any_gone(next)) {
      std::erase_if(next.members, [&](const auto& who) { return is_gone(who); });
      if (next.joiner && is_gone(*next.joiner))
        next.joiner.reset();
    } else if (next.joiner) {
      const auto status = find(next.members.back())->decide_at.decide.status();
      if (status.config != next.config || !status.joiner_synced)
        return;
      next.members.push_back(*std::exchange(next.joiner, std::nullopt));
      ++joins_;
    } else if (next.members.size() < server_count) {
      for (const auto& x : nodes_)
        if (!x->is_cut && std::ranges::find(next.members, x->id()) == next.members.end())
          next.joiner = x->id();
    }
    const bool all_act = last_config_ == record_.active.config.value; // No server has sealed it.
    if (next == record_.active && all_act)
      return;
    REQUIRE_FALSE(next.members.empty());
    next.config = {++last_config_};
    record_.proposed = next;
  }

  static bool has_part(const chain_config& config, const member_id& who) {
    return config.joiner == who || std::ranges::find(config.members, who) != config.members.end();
  }

  void give_desired() {
    auto& x = *nodes_[below(nodes_.size())];
    if (x.is_cut)
      return;
    x.decide_at.decide.renew(x.heard_at);
    x.decide_at.reconcile(record_);
    judge_prefixes();
  }

  // -- invariants --

  /// Checks that the steps of all replicas are prefixes of one history.
  void judge_prefixes() {
    for (const auto& x : nodes_) {
      const auto& steps = x->decide_at.steps;
      const auto common = std::min(steps.size(), longest_.size());
      REQUIRE(std::equal(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(common),
                         longest_.begin()));
      if (steps.size() > longest_.size())
        longest_ = steps;
    }
  }

  /// Checks that the acknowledging replica has applied the batch.
  void judge_acknowledged(const replica_node& by, std::uint64_t batch,
                          std::uint64_t version) const {
    REQUIRE(by.decide.state()->version() == version);
    const std::string name = " " + std::to_string(batch) + " ";
    REQUIRE(std::ranges::any_of(by.steps, [&](const std::string& step) {
      return !step.starts_with("not") && (step + " ").find(name) != std::string::npos;
    }));
  }

  /// Returns whether the run is over. A bsp chain may be left with a joiner, because no clock
  /// passes any more.
  bool done() {
    const auto& chain = record_.active;
    return is_quiet_ && acknowledged_.size() == job_.batches() && !record_.proposed
           && (chain.members.size() == server_count || (chain.joiner && goes_by_clocks(job_)))
           && std::ranges::all_of(nodes_, [&](const auto& x) {
                return !has_part(chain, x->id()) || x->decide_at.steps == longest_;
              });
  }

  std::string text() const {
    std::string all = std::to_string(acknowledged_.size()) + " acknowledged, epoch "
                      + std::to_string(record_.active.config.value) + ", "
                      + std::to_string(record_.active.members.size()) + " members"
                      + (record_.active.joiner ? " and a joiner" : "")
                      + (record_.proposed ? ", another one proposed" : "");
    for (const auto& x : nodes_)
      all += "; " + std::to_string(x->decide_at.steps.size()) + " steps";
    return all;
  }

  void judge_end() {
    const auto& first = *find(record_.active.members.front())->decide_at.decide.state();
    CHECK(first.batches_applied() == batch_set{batch_id{job_.batches()}});
    CHECK(applied_in(longest_).size() == job_.batches() * (is_mixed_ ? 2 : 1));
    for (const auto& x : nodes_) {
      if (!has_part(record_.active, x->id()))
        continue;
      const auto& state = *x->decide_at.decide.state();
      CHECK(state.batches_applied() == first.batches_applied());
      CHECK(state.version() == first.version());
      CHECK(state.bsp_clocks() == first.bsp_clocks());
      CHECK(state.pending() == 0);
    }
    for (const auto& [what, count] : applied_in(longest_)) {
      CAPTURE(what.first);
      CAPTURE(what.second);
      CHECK(count == 1);
    }
  }

  std::mt19937_64 random_;
  job_spec job_;
  bool is_mixed_;
  time_point now_{0};
  std::vector<std::unique_ptr<node>> nodes_;
  std::deque<sent_message> mail_;
  chain_metadata record_;
  std::uint64_t last_config_ = 0;
  std::uint64_t last_incarnation_ = 1;
  std::uint64_t last_token_ = 0;
  std::uint64_t clocks_[2] = {0, 0};
  std::map<std::uint64_t, open_request> open_;
  std::set<std::uint64_t> acknowledged_;
  std::uint64_t version_told_ = 0;
  std::vector<std::string> longest_; ///< The longest list of steps that any replica has applied.
  bool is_quiet_ = false;
  int quiet_after_ = 0;

public:
  int cuts_ = 0;
  int joins_ = 0;
};

void run_seeds(const std::vector<consistency>& modes) {
  int cuts = 0, joins = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    world w{seed, modes};
    w.run();
    cuts += w.cuts_;
    joins += w.joins_;
  }
  CHECK(cuts > 300);
  CHECK(joins > 300);
}

} // namespace

TEST_CASE("replicas of an asp job hold one history") { run_seeds({asp()}); }
TEST_CASE("replicas of an ssp job hold one history") { run_seeds({ssp(1)}); }
TEST_CASE("replicas of a bsp job hold one history") { run_seeds({bsp()}); }
TEST_CASE("replicas of a mixed job hold one history") { run_seeds({asp(), bsp()}); }

} // namespace troupe::replica_history_test
