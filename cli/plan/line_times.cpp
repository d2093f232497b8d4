#include "cli/plan/line_times.hpp"

#include "actors/protocol/pipeline/part_flow.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

namespace troupe::planning {

/// Carries out the effects of all flows of a line.
class virtual_line::state {
public:
  state(const line_costs& costs, const micro_schedule& schedule) : costs_(costs) {
    const auto parts = static_cast<std::uint32_t>(costs.parts.size());
    assert(parts > 0 && costs.link_seconds.size() + 1 == parts);
    double serial_seconds = 0;
    for (const auto& each : costs.parts)
      serial_seconds += each.forward_seconds + each.backward_seconds;
    for (const auto each : costs.link_seconds)
      serial_seconds += 2 * each;
    tick_exponent_ = 60 - (serial_seconds > 0 ? std::ilogb(serial_seconds) : 0);
    for (std::uint32_t i = 0; i < parts; ++i)
      members_.push_back(std::make_unique<member>(*this, part_setup{i, parts, schedule, i + 1}));
    lanes_.resize(2 * costs.link_seconds.size());
    for (std::uint32_t i = 0; i < parts; ++i) {
      if (i > 0)
        members_[i]->flow.joined(part_side::above, *members_[i]);
      if (i + 1 < parts)
        members_[i]->flow.joined(part_side::below, *members_[i]);
    }
    carry_out();
  }

  result<line_times> run(const batch_cut& cut) {
    cut_ = &cut;
    now_ = 0;
    done_.reset();
    for (auto& each : lanes_)
      each.free_at = 0;
    for (auto& each : members_)
      each->begin_batch();
    auto& first = *members_.front();
    first.flow.began({batch_id{++batches_}, 0, {}, cut.count()}, first);
    carry_out();
    if (!done_)
      fail("no end of the batch");
    if (fault_)
      return *fault_;
    line_times made{.seconds = seconds(done_->at), .parts = {}, .loss = done_->loss};
    for (const auto& each : members_)
      made.parts.push_back(each->times(*this));
    return made;
  }

private:
  using ticks = std::uint64_t;

  enum class kind : std::uint8_t { answered, computed_forward, computed_backward, word_came };
  struct event {
    ticks at = 0;
    std::uint64_t number = 0;
    kind what = kind::answered;
    std::uint32_t index = 0; ///< Of the part or the lane.
  };
  struct later {
    bool operator()(const event& a, const event& b) const { return key(a) > key(b); }
    static std::tuple<ticks, bool, std::uint64_t> key(const event& x) {
      return {x.at, x.what == kind::word_came, x.number}; // Words come last.
    }
  };

  struct end {
    ticks at = 0;
    double loss = 0;
  };

  /// A lane is one direction of a link: 2 * i goes down from part i, 2 * i + 1 goes up to it.
  struct lane {
    std::deque<part_word> words; ///< On their way, in order.
    ticks free_at = 0;
  };

  /// Counts inputs of micro-batches, and the most of them and of their samples at a time.
  struct input_count {
    void add(std::uint64_t more_samples) {
      most = std::max(most, ++count);
      samples += more_samples;
      samples_most = std::max(samples_most, samples);
    }
    void take(std::uint64_t fewer_samples) {
      --count;
      samples -= fewer_samples;
    }

    std::uint32_t count = 0, most = 0;
    std::uint64_t samples = 0, samples_most = 0;
  };

  class member final : public part_effects {
  public:
    member(state& in, const part_setup& setup) : flow(setup), in_(&in), part_(setup.part) {}

    void begin_batch() {
      forwards_ = backwards_ = 0;
      busy_ = 0;
      kept_ = held_ = {};
    }

    void send(part_side to, const part_word& what) override {
      in_->send(to == part_side::below ? 2 * part_ : 2 * part_ - 1, what);
    }
    void keep_input(std::uint32_t micro) override { held_.add(in_->samples(micro)); }
    void keep_gradient(std::uint32_t) override {}
    void pull(const part_attempt& of, const part_step&) override { await_answer(of, false); }
    void compute_forward(std::uint32_t micro) override {
      if (micro != forwards_++)
        in_->fail("forward in another order");
      kept_.add(in_->samples(micro));
      if (flow.is_first()) // Its input is a stretch of the batch, which nobody sends.
        held_.add(in_->samples(micro));
      compute(kind::computed_forward, micro, in_->costs_.parts[part_].forward_seconds);
    }
    void compute_backward(std::uint32_t micro) override {
      if (micro != backwards_++)
        in_->fail("backward in another order");
      compute(kind::computed_backward, micro, in_->costs_.parts[part_].backward_seconds);
    }
    void push(const part_attempt& of, const part_step&) override { await_answer(of, true); }
    void done(double loss) override { in_->done_ = {in_->now_, loss}; }
    void drop(const part_attempt&) override {}
    void say(const std::string& line) override { in_->fail(line); }

    void take(kind what) {
      switch (what) {
      case kind::answered:
        if (is_pushing_)
          flow.pushed(asked_, *this);
        else
          flow.pulled(asked_, *this);
        break;
      case kind::computed_forward: flow.computed_forward(*this); break;
      case kind::computed_backward: {
        const auto samples = in_->samples(backwards_ - 1);
        kept_.take(samples);
        held_.take(samples);
        flow.computed_backward(flow.is_last() ? 1 : 0, *this);
        break;
      }
      case kind::word_came: break; // Of a lane.
      }
    }

    line_times::part times(const state& in) const {
      return {in.seconds(busy_), kept_.most, held_.most, held_.samples_most};
    }

    part_flow flow;

  private:
    void await_answer(const part_attempt& of, bool is_pushing) {
      asked_ = of;
      is_pushing_ = is_pushing;
      in_->add(in_->now_, kind::answered, part_);
    }
    void compute(kind what, std::uint32_t micro, double batch_seconds) {
      const auto time = in_->share(micro, batch_seconds);
      busy_ += time;
      in_->add(in_->now_ + time, what, part_);
    }

    state* in_;
    std::uint32_t part_, forwards_ = 0, backwards_ = 0;
    ticks busy_ = 0;
    input_count kept_, held_;
    part_attempt asked_;
    bool is_pushing_ = false;
  };

  ticks share(std::uint32_t micro, double batch_seconds) const {
    return static_cast<ticks>(
      std::llround(std::ldexp(batch_seconds * (*cut_)[micro].weight, tick_exponent_)));
  }
  double seconds(ticks time) const {
    return std::ldexp(static_cast<double>(time), -tick_exponent_);
  }
  std::uint64_t samples(std::uint32_t micro) const { return (*cut_)[micro].size; }

  void fail(const std::string& why) {
    if (!fault_)
      fault_ = failure{errc::contract_broken, "a flow breaks its contract: " + why};
  }

  void add(ticks at, kind what, std::uint32_t index) {
    events_.push({at, ++numbers_, what, index});
  }

  void send(std::uint32_t index, const part_word& what) {
    auto& to = lanes_[index];
    const bool has_tensor =
      what.what == part_word::kind::forward || what.what == part_word::kind::backward;
    to.free_at = std::max(to.free_at, now_)
                 + (has_tensor ? share(what.micro, costs_.link_seconds[index / 2]) : 0);
    to.words.push_back(what);
    add(to.free_at, kind::word_came, index);
  }

  void deliver(std::uint32_t index) {
    const auto word = lanes_[index].words.front();
    lanes_[index].words.pop_front();
    const bool is_down = index % 2 == 0;
    auto& to = *members_[index / 2 + (is_down ? 1 : 0)];
    const auto side = is_down ? part_side::above : part_side::below;
    if (const auto heard = to.flow.heard(side, word, to); !heard)
      fail(heard.error().text);
  }

  /// Takes events in the order of their times, to the last one.
  void carry_out() {
    while (!events_.empty() && !fault_) {
      const auto next = events_.top();
      events_.pop();
      now_ = next.at;
      if (next.what == kind::word_came)
        deliver(next.index);
      else
        members_[next.index]->take(next.what);
    }
  }

  const line_costs costs_;
  int tick_exponent_ = 0; ///< A second has 2^tick_exponent_ ticks.
  const batch_cut* cut_ = nullptr;
  ticks now_ = 0;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<lane> lanes_;
  std::priority_queue<event, std::vector<event>, later> events_;
  std::uint64_t numbers_ = 0, batches_ = 0;
  std::optional<end> done_;
  std::optional<failure> fault_;
};

virtual_line::virtual_line(const line_costs& costs, const micro_schedule& schedule)
    : state_(std::make_unique<state>(costs, schedule)) {}
virtual_line::~virtual_line() = default;

result<line_times> virtual_line::run(const batch_cut& cut) { return state_->run(cut); }

} // namespace troupe::planning
