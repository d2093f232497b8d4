// Runs whole lines of flows in virtual time, and compares idle shares and kept inputs with theory.
#include "actors/protocol/pipeline/part_flow.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::part_line_test {

namespace {

/// A line whose words, pulls and pushes take no time.
class line {
public:
  line(std::uint32_t parts, micro_order order, std::uint64_t forward_time,
       std::uint64_t backward_time)
      : forward_time_(forward_time), backward_time_(backward_time) {
    for (std::uint32_t i = 0; i < parts; ++i) {
      flows_.push_back(std::make_unique<part_flow>(part_setup{i, parts, order, i + 1}));
      shells_.push_back(std::make_unique<shell>(*this, i));
    }
    for (std::uint32_t i = 0; i < parts; ++i) {
      if (i > 0)
        flows_[i]->joined(part_side::above, *shells_[i]);
      if (i + 1 < parts)
        flows_[i]->joined(part_side::below, *shells_[i]);
    }
    carry();
  }

  /// Computes a batch. Returns the time that it took.
  std::uint64_t run(std::uint32_t micros) {
    const auto begin = now_;
    flows_[0]->began({batch_id{1}, 0, {}, micros}, *shells_[0]);
    carry();
    while (!computations_.empty()) {
      const auto next = computations_.begin();
      const auto [part, is_forward] = next->second;
      now_ = next->first;
      computations_.erase(next);
      if (is_forward)
        flows_[part]->computed_forward(*shells_[part]);
      else
        flows_[part]->computed_backward(0.5, *shells_[part]);
      // All that ends at one time is known before a word of it comes.
      if (computations_.empty() || computations_.begin()->first != now_)
        carry();
    }
    return now_ - begin;
  }

  /// Returns the most inputs that a part kept, from the begin of their forward on.
  std::uint32_t kept_most(std::uint32_t part) const { return shells_[part]->kept_most; }
  /// Returns the most inputs that a part had, with those that wait for their forward.
  std::uint32_t held_most(std::uint32_t part) const { return shells_[part]->held_most; }

  std::uint64_t done = 0;
  double loss = 0;

private:
  class shell final : public part_effects {
  public:
    shell(line& in, std::uint32_t self) : in_(&in), self_(self) {}

    void send(part_side to, const part_word& what) override {
      in_->words_.emplace_back(to == part_side::above ? self_ - 1 : self_ + 1,
                               to == part_side::above ? part_side::below : part_side::above, what);
    }
    void keep_input(std::uint32_t) override { held_most = std::max(held_most, ++held_); }
    void keep_gradient(std::uint32_t) override {}
    void pull(const part_attempt& of, const part_step&) override { in_->pulls_[self_] = of; }
    void compute_forward(std::uint32_t micro) override {
      CHECK(micro == forwards_++);
      kept_most = std::max(kept_most, forwards_ - backwards_);
      in_->computations_.emplace(in_->now_ + in_->forward_time_, std::pair{self_, true});
    }
    void compute_backward(std::uint32_t micro) override {
      CHECK(micro == backwards_++);
      held_ -= self_ == 0 ? 0 : 1;
      in_->computations_.emplace(in_->now_ + in_->backward_time_, std::pair{self_, false});
    }
    void push(const part_attempt& of, const part_step&) override { in_->pushes_[self_] = of; }
    void done(double loss) override {
      ++in_->done;
      in_->loss = loss;
      forwards_ = backwards_ = 0;
    }
    void drop(const part_attempt&) override { forwards_ = backwards_ = 0; }
    void say(const std::string& text) override { FAIL(text); }

    std::uint32_t kept_most = 0, held_most = 0;

  private:
    line* in_;
    std::uint32_t self_, forwards_ = 0, backwards_ = 0, held_ = 0;
  };

  void carry() {
    while (!words_.empty() || !pulls_.empty() || !pushes_.empty()) {
      for (const auto& [part, of] : std::exchange(pulls_, {}))
        flows_[part]->pulled(of, *shells_[part]);
      for (const auto& [part, of] : std::exchange(pushes_, {}))
        flows_[part]->pushed(of, *shells_[part]);
      if (words_.empty())
        continue;
      const auto [to, from, word] = words_.front();
      words_.pop_front();
      REQUIRE(flows_[to]->heard(from, word, *shells_[to]));
    }
  }

  std::uint64_t forward_time_, backward_time_, now_ = 0;
  std::vector<std::unique_ptr<part_flow>> flows_;
  std::vector<std::unique_ptr<shell>> shells_;
  std::deque<std::tuple<std::uint32_t, part_side, part_word>> words_;
  std::map<std::uint32_t, part_attempt> pulls_, pushes_;
  std::multimap<std::uint64_t, std::pair<std::uint32_t, bool>> computations_; ///< By their end.
};

TEST_CASE("both orders leave a part idle for (P - 1) / (M + P - 1) of the time, within bounds") {
  for (const auto order : {micro_order::fill_drain, micro_order::one_f_one_b})
    for (const std::uint32_t parts : {1u, 2u, 3u, 4u})
      for (const std::uint32_t micros : {1u, 2u, 4u, 8u})
        for (const std::uint64_t backward_time : {1u, 2u}) {
          CAPTURE(to_string(order));
          CAPTURE(parts);
          CAPTURE(micros);
          line one{parts, order, 1, backward_time};
          for (std::uint64_t batch = 1; batch <= 3; ++batch) {
            const auto took = one.run(micros);
            const auto busy = micros * (1 + backward_time); // Of each part.
            // idle / took = (P - 1) / (M + P - 1), in whole numbers.
            CHECK((took - busy) * (micros + parts - 1) == (parts - 1) * took);
            CHECK(one.done == batch);
          }
          CHECK(one.loss == 0.5 * micros);
          for (std::uint32_t part = 0; part < parts; ++part) {
            const bool is_fill = order == micro_order::fill_drain;
            CHECK(one.kept_most(part) == (is_fill ? micros : std::min(micros, parts - part)));
            CHECK(one.held_most(part) <= (is_fill ? micros : std::min(micros, parts - part + 1)));
          }
        }
}

} // namespace

} // namespace troupe::part_line_test
