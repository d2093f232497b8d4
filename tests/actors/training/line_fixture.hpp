// Runs the parts of a line on one thread, over lanes in memory and with scripted servers.
#pragma once

#include "actors/training/line_part.hpp"

#include "doctest/doctest.h"

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// A layer y = x w + b. The first one reads x from the data; the last one has a squared loss.
class linear_part final : public part {
public:
  linear_part(std::size_t ins, std::size_t outs, bool is_last)
      : ins_(ins), outs_(outs), is_last_(is_last) {}

  void forward(const micro_batch& micro, const_tensors values, std::span<const float> in,
               part_output& out) override {
    if (!is_last_)
      std::ranges::copy(output(inputs(micro, in), values), out.of_width(outs_).begin());
  }

  double backward(const micro_batch& micro, const_tensors values, std::span<const float> in,
                  std::span<const float> out_gradient, mutable_tensors gradients,
                  std::span<float> in_gradient) override {
    const auto x = inputs(micro, in);
    std::vector<float> dy{out_gradient.begin(), out_gradient.end()};
    double loss = 0;
    if (is_last_) {
      const auto count = static_cast<float>(micro.samples.size());
      dy = output(x, values);
      for (std::size_t i = 0; i < dy.size(); ++i) {
        const auto away = dy[i] - static_cast<float>(micro.samples[i / outs_] % 3);
        loss += 0.5 * away * away / count;
        dy[i] = away / count;
      }
    }
    std::ranges::fill(gradients[0], 0.0f);
    std::ranges::fill(gradients[1], 0.0f);
    std::ranges::fill(in_gradient, 0.0f);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const auto sample = i / outs_, j = i % outs_;
      gradients[0][j] += dy[i];
      for (std::size_t k = 0; k < ins_; ++k) {
        gradients[1][k * outs_ + j] += x[sample * ins_ + k] * dy[i];
        if (!in_gradient.empty())
          in_gradient[sample * ins_ + k] += values[1][k * outs_ + j] * dy[i];
      }
    }
    return loss;
  }

private:
  std::vector<float> inputs(const micro_batch& micro, std::span<const float> in) const {
    std::vector<float> x{in.begin(), in.end()};
    for (std::size_t i = 0; in.empty() && i < micro.samples.size() * ins_; ++i)
      x.push_back(0.1f * static_cast<float>((micro.samples[i / ins_] * 7 + i % ins_ * 3) % 11));
    return x;
  }

  std::vector<float> output(const std::vector<float>& x, const_tensors values) const {
    std::vector<float> y;
    for (std::size_t sample = 0; sample * ins_ < x.size(); ++sample)
      for (std::size_t j = 0; j < outs_; ++j) {
        y.push_back(values[0][j]);
        for (std::size_t k = 0; k < ins_; ++k)
          y.back() += x[sample * ins_ + k] * values[1][k * outs_ + j];
      }
    return y;
  }

  std::size_t ins_, outs_;
  bool is_last_;
};

/// Widths between the layers of a line of at most three parts.
inline constexpr std::size_t line_widths[] = {3, 5, 4, 2};

/// Returns a job of 7 samples in batches of 3: the last batch of an epoch has one. Part p has the
/// tables 2p (weights) and 2p + 1 (bias).
inline job_spec line_job(std::uint32_t parts) {
  job_spec job;
  job.samples = 7;
  job.batch_samples = 3;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const auto number = std::to_string(i);
    job.tables.push_back({.name = "w" + number, .shape = {line_widths[i], line_widths[i + 1]}});
    job.tables.push_back({.name = "b" + number, .shape = {line_widths[i + 1]}});
  }
  return job;
}

/// Returns the part's tables in the order of its spec.
inline std::vector<table_id> line_tables(std::uint32_t number) {
  return {{2 * number + 1}, {2 * number}};
}

/// Returns the values of all tables.
inline std::vector<float_ptr> line_values(const job_spec& job) {
  std::vector<float_ptr> all;
  for (std::size_t i = 0; i < job.tables.size(); ++i) {
    const auto made = buffer_pool{}.floats(job.tables[i].size());
    for (std::size_t k = 0; k < job.tables[i].size(); ++k)
      made.get()[k] = 0.05f * static_cast<float>((k * 5 + i * 3) % 9) - 0.2f;
    all.push_back(made);
  }
  return all;
}

/// Gradients of all tables, and the loss.
struct line_gradient {
  std::vector<std::vector<float>> tables;
  double loss = 0;
};

/// Computes a batch without a line: micro-batch for micro-batch through all layers.
inline line_gradient whole_gradient(std::uint32_t parts, batch_id which, std::uint32_t micros) {
  const auto job = line_job(parts);
  const auto values = line_values(job);
  sampler batches{job};
  const auto work = batches.at(which);
  const batch_cut cut{work.samples.size(), micros};
  line_gradient all{std::vector<std::vector<float>>(job.tables.size()), 0};
  for (std::uint32_t m = 0; m < cut.count(); ++m) {
    const micro_batch micro{work, work.samples.subspan(cut[m].begin, cut[m].size), m, cut.count()};
    std::vector<std::vector<float>> inputs(1);
    const auto own = [&](std::uint32_t p) {
      std::vector<std::span<const float>> spans;
      for (const auto table : line_tables(p))
        spans.emplace_back(values[table.value].get(), job.tables[table.value].size());
      return spans;
    };
    const auto layer = [&](std::uint32_t p) {
      return linear_part{line_widths[p], line_widths[p + 1], p + 1 == parts};
    };
    for (std::uint32_t p = 0; p + 1 < parts; ++p) {
      part_output out{cut[m].size};
      layer(p).forward(micro, own(p), inputs.back(), out);
      inputs.push_back(out.take());
    }
    std::vector<float> upper;
    for (auto p = parts; p-- > 0;) {
      std::vector<float> lower(inputs[p].size());
      std::vector<std::vector<float>> made;
      for (const auto table : line_tables(p))
        made.emplace_back(job.tables[table.value].size());
      std::vector<std::span<float>> spans{made[0], made[1]};
      const auto loss = layer(p).backward(micro, own(p), inputs[p], upper, spans, lower);
      all.loss +=
        loss * static_cast<double>(cut[m].size) / static_cast<double>(work.samples.size());
      const auto weight = static_cast<float>(static_cast<double>(cut[m].size)
                                             / static_cast<double>(work.samples.size()));
      for (std::size_t i = 0; i < 2; ++i) {
        auto& sum = all.tables[line_tables(p)[i].value];
        for (std::size_t k = 0; k < made[i].size(); ++k)
          if (m == 0)
            sum.push_back(made[i][k] * weight);
          else
            sum[k] += made[i][k] * weight;
      }
      upper = lower;
    }
  }
  return all;
}

/// A lane with a window of one parcel.
class line_lane final : public port_line {
public:
  line_lane(port_base& from, port_base& to) : from_(from), to_(to) { from.connect(this); }

  bool send(std::uint32_t, std::vector<std::byte> head,
            std::vector<parcel_tensor> tensors) override {
    if (!is_joined_ || !under_way_.empty()) {
      owes_ = true;
      ++refused;
      return false;
    }
    under_way_.push_back({1, 1, std::move(head), std::move(tensors)});
    return true;
  }
  bool ready(std::uint32_t) const override { return is_joined_ && under_way_.empty(); }
  std::uint32_t peers() const override { return 1; }
  bool may_wait() const override { return false; }
  std::optional<std::pair<parcel_message, std::uint32_t>> next(std::chrono::nanoseconds) override {
    return std::nullopt;
  }
  void ask(std::vector<std::vector<std::uint64_t>>) override {}

  /// `is_end_there`: the end's object still lives.
  void join(bool is_joined, bool is_from_there = true, bool is_to_there = true) {
    is_joined_ = is_joined;
    under_way_.clear();
    owes_ = has_news_ = false;
    if (is_from_there)
      (is_joined ? from_.joined : from_.lost)(0);
    if (is_to_there)
      (is_joined ? to_.joined : to_.lost)(0);
  }
  /// Carries a parcel. Returns false if there is nothing to do. The sender hears of the credit at
  /// the next call, and may send before.
  bool carry() {
    const bool tells = std::exchange(has_news_, false);
    if (tells)
      from_.deliver_writable(0);
    if (under_way_.empty())
      return tells;
    auto what = std::move(under_way_.front());
    under_way_.pop_front();
    to_.deliver(std::move(what), 0);
    has_news_ = std::exchange(owes_, false);
    return true;
  }

  std::size_t refused = 0;

private:
  port_base& from_;
  port_base& to_;
  std::deque<parcel_message> under_way_;
  bool is_joined_ = false, owes_ = false, has_news_ = false;
};

/// A part, and the shell around it.
struct line_member final : line_shell {
  line_member(line_part_options options, const part_maker& make)
      : line{std::move(options), make, *this} {}

  void ask(std::uint64_t number, request what) override { asked.emplace_back(number, what); }
  void run_soon() override { ++runs; }
  void done(gradient_outcome what) override { outcomes.push_back(std::move(what)); }
  void fail(const failure& why) override { failures.push_back(why); }
  void say(const std::string& text) override { said.push_back(text); }

  std::deque<std::pair<std::uint64_t, request>> asked;
  int runs = 0;
  std::vector<gradient_outcome> outcomes;
  std::vector<failure> failures;
  std::vector<std::string> said;
  line_part line;
};

/// A line, and servers that answer its parts.
class whole_line {
public:
  using makers = std::function<part_maker(std::uint32_t part)>;

  /// `micros_of_last`: micro-batches of the last part, if they differ.
  whole_line(std::uint32_t parts, std::uint32_t micros, micro_order order, makers make = {},
             std::uint32_t micros_of_last = 0, std::uint32_t ahead = 0)
      : job(line_job(parts)), micros_(micros),
        micros_of_last_(micros_of_last == 0 ? micros : micros_of_last), schedule_{order, ahead},
        make_(std::move(make)), members(parts), lanes_(parts) {
    if (!make_)
      make_ = [parts](std::uint32_t number) -> part_maker {
        return [number, parts] {
          return std::make_unique<linear_part>(line_widths[number], line_widths[number + 1],
                                               number + 1 == parts);
        };
      };
    for (std::uint32_t i = 0; i < parts; ++i)
      begin(i);
    for (std::uint32_t i = 0; i + 1 < parts; ++i)
      join(i);
  }

  /// Makes a part, the next incarnation of it.
  void begin(std::uint32_t number) {
    line_part_options how{.job = job, .tables = line_tables(number)};
    how.part = number;
    how.parts = static_cast<std::uint32_t>(members.size());
    how.micros = number + 1 == how.parts ? micros_of_last_ : micros_;
    how.schedule = schedule_;
    how.worker = {4};
    how.incarnation = number == 0 ? ++workers_ : ++incarnations_;
    how.whose = "line:" + std::to_string(number);
    how.change = change;
    members[number] = std::make_unique<line_member>(how, make_(number));
  }

  /// Joins a part with the one below it.
  void join(std::uint32_t upper) {
    auto& above = *members[upper]->line.below();
    auto& below = *members[upper + 1]->line.above();
    lanes_[upper] = {std::make_unique<line_lane>(above.to_below, below.from_above),
                     std::make_unique<line_lane>(below.to_above, above.from_below)};
    for (auto& each : lanes_[upper])
      each->join(true);
  }

  /// A part dies, and its successor joins its neighbours.
  void restart(std::uint32_t number) {
    if (number > 0) {
      lanes_[number - 1][0]->join(false, true, false);
      lanes_[number - 1][1]->join(false, false, true);
    }
    if (number + 1 < members.size()) {
      lanes_[number][0]->join(false, false, true);
      lanes_[number][1]->join(false, true, false);
    }
    begin(number);
    if (number > 0)
      join(number - 1);
    if (number + 1 < members.size())
      join(number);
  }

  /// Breaks both lanes to the part below and joins them again.
  void rejoin(std::uint32_t upper) {
    for (const bool is_there : {false, true})
      for (auto& each : lanes_[upper])
        each->join(is_there);
  }

  void compute(std::uint64_t number, batch_id which, std::uint64_t generation = 1) {
    gradient_task task{number, which, line_values(job), {}, 7, {}, {generation}, number};
    members[0]->line.compute(std::move(task));
  }

  /// Does one event of each kind at each part. Returns false if nothing is left to do.
  bool step() {
    bool has_worked = false;
    for (auto& each : lanes_)
      for (auto& lane : each)
        has_worked |= lane && lane->carry();
    for (auto& each : members) {
      if (each->runs > 0) {
        --each->runs;
        each->line.run();
        has_worked = true;
      }
      if (!each->asked.empty()) {
        auto [number, what] = std::move(each->asked.front());
        each->asked.pop_front();
        each->line.answered(number, answer ? answer(what) : applied(what), now);
        has_worked = true;
      }
      each->line.tick(now);
    }
    now += std::chrono::milliseconds{10};
    return has_worked;
  }
  /// Runs until nothing happens for 200 ms.
  void run() {
    for (int idle = 0; idle < 20; ++idle)
      if (step())
        idle = 0;
  }

  /// Answers as a server does.
  result<reply> applied(const request& what) {
    reply made;
    if (what.push) {
      pushes.push_back(*what.push);
      made.pushed = push_reply{};
    }
    if (what.pull) {
      pulls.push_back(*what.pull);
      made.pulled.emplace().version = 7;
      for (const auto& each : what.pull->ranges)
        made.pulled->pieces.push_back({each, line_values(job)[each.table.value]});
    }
    return made;
  }

  /// Returns the failures of all parts.
  std::vector<failure> failures() const {
    std::vector<failure> all;
    for (const auto& each : members)
      all.insert(all.end(), each->failures.begin(), each->failures.end());
    return all;
  }
  std::size_t refused_parcels() const {
    std::size_t all = 0;
    for (const auto& each : lanes_)
      for (const auto& lane : each)
        all += lane ? lane->refused : 0;
    return all;
  }

  job_spec job;
  time_point now{0};
  std::function<result<reply>(const request&)> answer; ///< Null: applied().
  /// Changes the sums of parts that begin from now on; null: nothing does.
  std::function<void(const batch&, mutable_tensors)> change;
  std::vector<push_request> pushes;
  std::vector<pull_request> pulls;

private:
  std::uint32_t micros_, micros_of_last_;
  micro_schedule schedule_;
  makers make_;
  std::uint64_t workers_ = 9, incarnations_ = 20;

public:
  std::vector<std::unique_ptr<line_member>> members;

private:
  std::vector<std::array<std::unique_ptr<line_lane>, 2>> lanes_;
};

} // namespace troupe::test
