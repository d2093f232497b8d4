#include "actors/graph/ranks/link_communicator.hpp"

#include "actors/graph/ranks/bucket_flow.hpp"
#include "actors/graph/ranks/rendezvous.hpp"
#include "actors/protocol/process_name.hpp"
#include "kernels/schedules/strategies.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace {

using clock = std::chrono::steady_clock;

/// Pause between two attempts to reach a rank that does not listen yet.
constexpr std::chrono::milliseconds connect_pause{20};
/// Longest time until a sleeping caller notices a failure.
constexpr std::chrono::milliseconds sleep_max{50};
/// Most numbers on their way at once, 1 MiB: enough to keep a link busy between two rounds of its
/// thread, and little delay for a part that is more urgent.
constexpr std::size_t numbers_on_way_max = std::size_t{256} << 10;
/// Sent in place of a step's number: this rank has finished the sum and ends.
constexpr std::uint32_t farewell = 0xffffffff;
/// Sent in place of a step's number before the first sum: this rank has links with all others.
constexpr std::uint32_t all_linked = 0xfffffffe;
/// Bytes of a chunk, equal to those of a link's fragment.
constexpr std::size_t sum_chunk_bytes = 256 * 1024;

std::string rank_name(std::uint32_t rank) { return "rank " + std::to_string(rank); }

/// The label of a chunk. It travels in fields that mean something else in a real push.
struct chunk_label {
  std::uint32_t part = 0;
  std::uint64_t count = 0;       ///< Numbers of the whole part.
  std::uint64_t fingerprint = 0; ///< Fingerprint of the sum's schedules.
};

push_request to_push(const chunk_label& label) {
  push_request push;
  push.tables = {{label.part}};
  push.step.clock = label.count;
  push.base_version = label.fingerprint;
  return push;
}

/// Returns the label; nullopt if the request is no chunk.
std::optional<chunk_label> label_of(const request& what) {
  if (!what.push || what.push->pieces.size() > 1 || what.push->tables.size() != 1)
    return std::nullopt;
  return chunk_label{what.push->tables[0].value, what.push->step.clock, what.push->base_version};
}

/// Counts messages of a part that have left the buffer. The last reader of a message may be any
/// thread, with a lock of the links held, so it only counts here. This outlives the sum.
struct departures {
  explicit departures(std::uint32_t chunks) : left(chunks) {}
  std::vector<std::atomic<std::uint32_t>> left; ///< By chunk: messages that are no longer read.
};

/// A part of the sum, and its messages.
struct part_messages {
  sum_part what;
  std::shared_ptr<departures> gone;
  std::map<std::uint32_t, std::uint32_t> leaving{}; ///< By chunk: messages on their way.
  std::map<std::uint32_t, piece> inbox{};           ///< By step: chunks that wait to be taken.
};

class link_communicator final : public kernels::communicator {
public:
  link_communicator(const hello& self, const link_communicator_options& options, std::size_t ranks)
      : options_(options), meeting_(self.from.index, static_cast<std::uint32_t>(ranks)),
        parted_(ranks), links_(self, events(), options.links) {}

  /// Waits until the others need no more chunks of this rank. They may still be adding up a sum
  /// that this rank has finished, and unread bytes in a link are lost with the link.
  ~link_communicator() override {
    std::unique_lock lock{mutex_};
    if (formed_ && !failed_ && !adding()) {
      tell_all(farewell);
      news_.wait_for(lock, options_.parting, [this] {
        for (std::uint32_t other = 0; other < ranks(); ++other)
          if (meeting_.link_to(other) && !parted_[other])
            return false;
        return true;
      });
    }
    lock.unlock();
    links_.stop();
  }

  std::uint32_t rank() const override { return meeting_.rank(); }
  std::uint32_t ranks() const override { return meeting_.ranks(); }

  // -- forming --

  result<void> form(const std::vector<endpoint>& addresses, int listener) {
    if (auto listening = links_.listen_on(listener); !listening)
      return listening.error();
    std::unique_lock lock{mutex_};
    const auto until = clock::now() + options_.forming;
    auto tell_at = clock::now() + options_.waiting_told;
    auto retry_at = clock::now();
    while (true) {
      if (meeting_.take_complete())
        tell_all(all_linked);
      formed_ = meeting_.is_formed();
      if (formed_ || (options_.wanted && !options_.wanted()))
        tell_waits("communicator", "");
      if (formed_)
        return {};
      if (options_.wanted && !options_.wanted())
        return {errc::timed_out, "this communicator is not wanted any more"};
      const auto now = clock::now();
      if (now >= until)
        return {errc::timed_out, late_text()};
      if (now >= tell_at) {
        tell_waits("communicator", "waits for " + missing_text());
        tell_at = now + options_.waiting_told;
      }
      if (now >= retry_at) {
        for (const auto other : meeting_.wanted())
          meeting_.connecting(other, links_.connect(addresses[other]));
        retry_at = now + connect_pause;
      }
      news_.wait_until(lock, std::min(retry_at, until));
    }
  }

  // -- sums --

  void begin(std::span<const std::span<float>> parts) override {
    std::vector<sum_part> planned;
    for (const auto part : parts) {
      auto& plan = plans_[part.size()];
      if (plan.steps.empty())
        plan = plan_of_rank(schedule_for_links(ranks(), part.size_bytes()), rank());
      planned.push_back({&plan, part});
    }
    begin_planned(planned);
  }

  /// The transport's thread goes on with the sum.
  void ready(std::uint32_t part) override {
    {
      const std::lock_guard lock{mutex_};
      flow_.ready(part);
    }
    links_.wake();
  }

  result<void> finish() override {
    auto until = clock::now() + options_.deadline;
    auto seen = moves_.load();
    std::unique_lock lock{mutex_};
    flow_.all_ready();
    while (!failed_) {
      go_on(); // Repeated, as a message may leave without any event.
      if (failed_ || !adding())
        break;
      lock.unlock();
      finished_.wait(sum_, options_.wait, sleep_max);
      lock.lock();
      if (const auto moves = moves_.load(); moves != seen) {
        seen = moves;
        until = clock::now() + options_.deadline;
      } else if (clock::now() >= until && adding()) {
        fail({errc::timed_out, "no message arrived for "
                                 + std::to_string(options_.deadline.count() / 1000)
                                 + " s: a rank hangs or does not take part"});
      }
    }
    flow_ = {};
    parts_.clear();
    if (!failed_)
      return {};
    lock.unlock();
    links_.stop(); // The caller may free its numbers, and messages may still read them.
    return *failed_;
  }

  result<void> carry_out(const kernels::schedule& plan, std::span<float> numbers) override {
    const auto own = plan_of_rank(plan, rank());
    const std::array whole{sum_part{&own, numbers}};
    begin_planned(whole);
    return finish();
  }

  result<void> broadcast(std::uint32_t root, std::span<float> numbers) override {
    return carry_out(broadcast_for_links(ranks(), root, numbers.size_bytes()), numbers);
  }

private:
  struct early_item {
    std::uint32_t from;
    request_message item;
  };

  void begin_planned(std::span<const sum_part> parts) {
    const std::lock_guard lock{mutex_};
    assert(parts_.empty());
    ++sum_;
    fingerprint_ = 0;
    for (const auto& part : parts) {
      parts_.push_back({part, std::make_shared<departures>(part.plan->chunks)});
      fingerprint_ = (fingerprint_ * 31) ^ part.plan->fingerprint;
    }
    flow_ = bucket_flow{parts, numbers_on_way_max};
    for (auto& early : std::exchange(early_, {}))
      take_in(early.from, std::move(early.item));
    for (std::uint32_t other = 0; other < ranks(); ++other)
      note_parting(other);
  }

  link_events events() {
    link_events made;
    made.opened = [this](link_id link, const hello& peer, const std::string&) {
      const std::lock_guard lock{mutex_};
      const auto other = peer.from.index;
      if (other >= ranks() || other == rank())
        return;
      if (formed_)
        return on_rank_lost(other, "it began anew");
      meeting_.opened(other, link);
      forget(other);
      news_.notify_all();
    };
    made.received = [this](link_id link, message what) {
      const std::lock_guard lock{mutex_};
      const auto from = meeting_.rank_at(link);
      auto* requests = std::get_if<request_list>(&what);
      if (!from || !requests)
        return;
      for (auto& item : requests->items)
        take_in(*from, std::move(item));
      go_on();
    };
    made.lost = [this](link_id link, const failure& why) {
      const std::lock_guard lock{mutex_};
      const auto other = meeting_.lost(link);
      if (!other)
        why_not_ = why.text;
      else if (formed_)
        on_rank_lost(*other, why.text);
      else
        forget(*other);
      news_.notify_all();
    };
    made.rejected = [](const std::string&, const failure&) {};
    made.hampered = [this](const std::string& why) { tell_waits("accept", why); };
    made.settle = [this] {
      const std::lock_guard lock{mutex_};
      go_on();
    };
    return made;
  }

  // All of these require the lock.

  std::string late_text() const {
    const auto late = *meeting_.first_missing();
    return rank_name(late) + (meeting_.link_to(late) ? " did not find all others" : " did not come")
           + " within " + std::to_string(options_.forming.count() / 1000) + " s"
           + (why_not_.empty() ? "" : ": " + why_not_);
  }

  /// Names the ranks without a link to this one; else one rank that lacks links with others.
  std::string missing_text() const {
    std::vector<std::string> missing;
    for (std::uint32_t other = 0; other < ranks(); ++other)
      if (other != rank() && !meeting_.link_to(other))
        missing.push_back(to_string(process_of(worker_id{other})));
    if (!missing.empty())
      return list_of(missing) + (why_not_.empty() ? "" : ": " + why_not_);
    return to_string(process_of(worker_id{*meeting_.first_missing()})) + ", which waits for others";
  }

  void tell_waits(const std::string& topic, const std::string& text) const {
    if (options_.waits)
      options_.waits({log_level::warn, topic, {}, text});
  }

  /// Handles the loss of a rank of a formed communicator: an error unless the rank has ended
  /// properly.
  void on_rank_lost(std::uint32_t other, const std::string& why) {
    if (!parted_[other] || (adding() && flow_.awaits(other)))
      fail({errc::peer_lost, rank_name(other) + " is lost: " + why});
  }

  /// Drops messages of a rank that gave up or begins again, as they belong to no communicator.
  void forget(std::uint32_t other) {
    parted_[other].reset();
    std::erase_if(early_, [&](const early_item& each) { return each.from == other; });
  }

  void tell_all(std::uint32_t what) {
    for (std::uint32_t other = 0; other < ranks(); ++other)
      send(other, what, to_push({}));
  }

  void send(std::uint32_t to, std::uint32_t what, push_request push) {
    if (const auto link = meeting_.link_to(to))
      links_.send(*link, request_list{request_message{number_of(what), {std::move(push), {}}}});
  }

  std::uint64_t number_of(std::uint32_t step) const { return std::uint64_t{sum_} << 32 | step; }

  /// Returns whether a sum was begun and is not complete.
  bool adding() const { return !finished_.reached(sum_); }

  /// Fails if the rank ended before this sum, in which it takes no part.
  void note_parting(std::uint32_t other) {
    if (adding() && parted_[other] && *parted_[other] < sum_)
      fail({errc::peer_lost, rank_name(other) + " is lost: it ended"});
  }

  void take_in(std::uint32_t from, request_message item) {
    const auto sum = static_cast<std::uint32_t>(item.number >> 32);
    if (static_cast<std::uint32_t>(item.number) == all_linked) {
      meeting_.complete(from);
      news_.notify_all();
      return;
    }
    if (static_cast<std::uint32_t>(item.number) == farewell) {
      parted_[from] = sum;
      note_parting(from);
      news_.notify_all();
      return;
    }
    if (sum > sum_) { // Other ranks may have begun a later sum.
      early_.push_back({from, std::move(item)});
      return;
    }
    const auto number = static_cast<std::uint32_t>(item.number);
    const auto label = label_of(item.what);
    if (!label || sum != sum_ || parts_.empty()) {
      fail({errc::malformed, rank_name(from) + " sent a chunk that is not part of this sum"});
      return;
    }
    const auto own = label->part < parts_.size() ? parts_[label->part].what.numbers.size() : 0;
    if (label->fingerprint != fingerprint_ || label->count != own) {
      fail({errc::shape_mismatch,
            rank_name(from) + " adds up " + std::to_string(label->count) + " numbers, this rank "
              + std::to_string(own)
              + (label->fingerprint != fingerprint_ ? ", by another schedule" : "")});
      return;
    }
    if (!flow_.arrived(label->part, number, from)) {
      fail({errc::malformed, rank_name(from) + " sent a chunk that is not of the schedule"});
      return;
    }
    const auto& pieces = item.what.push->pieces;
    parts_[label->part].inbox[number] = pieces.empty() ? piece{} : pieces[0];
    moves_.fetch_add(1);
  }

  /// Does all steps that are possible now.
  void go_on() {
    if (failed_ || !adding())
      return;
    note_departures();
    while (const auto now = flow_.next()) {
      const auto& part = parts_[now->part].what;
      const auto range =
        kernels::range_of_chunk(part.numbers.size(), part.plan->chunks, now->what.step.chunk);
      if (now->what.step.from == rank())
        send_chunk(*now, range);
      else if (!take(*now, part.numbers.subspan(range.begin, range.size)))
        return;
      note_departures();
    }
    if (flow_.done())
      finished_.publish(sum_);
  }

  void note_departures() {
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      auto& part = parts_[i];
      for (auto& [chunk, count] : part.leaving)
        for (; count > 0 && part.gone->left[chunk].load() > 0; --count) {
          part.gone->left[chunk].fetch_sub(1);
          flow_.left(i, chunk);
        }
      std::erase_if(part.leaving, [](const auto& each) { return each.second == 0; });
    }
  }

  void send_chunk(const bucket_flow::own_step& now, const kernels::chunk_range& range) {
    auto& part = parts_[now.part];
    const auto& what = now.what;
    const auto number = what.step.chunk;
    auto push = to_push({now.part, part.what.numbers.size(), fingerprint_});
    if (range.size == 0) {
      flow_.left(now.part, number);
    } else {
      // The deleter of the last handle tells that the values are no longer read.
      push.pieces = {{{{now.part}, range.begin, range.size},
                      {&part.what.numbers[range.begin], [all = part.gone, number](const float*) {
                         all->left[number].fetch_add(1);
                       }}}};
      ++part.leaving[number];
    }
    send(what.step.to, what.number, std::move(push));
  }

  bool take(const bucket_flow::own_step& now, std::span<float> chunk) {
    const auto& what = now.what;
    const auto found = parts_[now.part].inbox.extract(what.number);
    const auto& piece = found.mapped();
    if (piece.where.count != chunk.size()) {
      fail({errc::shape_mismatch, rank_name(what.step.from) + " sent a chunk of another size"});
      return false;
    }
    if (chunk.empty())
      return true;
    const std::span from{piece.values.get(), chunk.size()};
    if (what.step.kind == kernels::step_kind::reduce)
      kernels::add(chunk, from);
    else
      std::memcpy(chunk.data(), from.data(), chunk.size_bytes());
    return true;
  }

  void fail(failure why) {
    if (failed_)
      return;
    failed_ = std::move(why);
    finished_.wake();
  }

  const link_communicator_options options_;
  std::mutex mutex_;
  std::condition_variable news_;
  rendezvous meeting_;
  std::vector<std::optional<std::uint32_t>> parted_; ///< By rank that ended: its last sum.
  std::string why_not_;                              ///< The last error of a connection.
  bool formed_ = false;

  std::uint32_t sum_ = 0;
  std::uint64_t fingerprint_ = 0;          ///< Fingerprint of the sum's schedules.
  std::map<std::size_t, flow_plan> plans_; ///< By the count of numbers, for begin().
  std::vector<part_messages> parts_;       ///< Parts of the sum.
  bucket_flow flow_;
  std::vector<early_item> early_; ///< Messages of later sums.
  std::optional<failure> failed_;
  kernels::shared_counter finished_; ///< The number of finished sums.
  std::atomic<std::uint64_t> moves_{0};
  transport links_; ///< Last: its thread uses all other members.
};

} // namespace

result<std::unique_ptr<kernels::communicator>>
form_link_communicator(const hello& self, const std::vector<endpoint>& addresses, int listener,
                       const link_communicator_options& options) {
  assert(self.from.index < addresses.size());
  auto made = std::make_unique<link_communicator>(self, options, addresses.size());
  if (auto formed = made->form(addresses, listener); !formed)
    return formed.error();
  return std::unique_ptr<kernels::communicator>{std::move(made)};
}

kernels::schedule schedule_for_links(std::uint32_t ranks, std::size_t bytes) {
  constexpr std::size_t ring_bytes_min = 64 * 1024; // Below it, a ring's latency costs too much.
  if (bytes < ring_bytes_min)
    return kernels::block(ranks, 1);
  std::uint32_t pieces = 1;
  while (std::size_t{ranks} * pieces * sum_chunk_bytes < bytes)
    pieces *= 2;
  const std::array ring{kernels::ring_in_order(ranks)};
  return kernels::rings(ring, pieces);
}

kernels::schedule broadcast_for_links(std::uint32_t ranks, std::uint32_t root, std::size_t bytes) {
  const auto pieces = std::max<std::size_t>(1, (bytes + sum_chunk_bytes - 1) / sum_chunk_bytes);
  return kernels::broadcast(ranks, root, static_cast<std::uint32_t>(pieces));
}

} // namespace troupe
