#include "actors/training/line_part.hpp"

#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/user_code.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/vector_ops.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

bool has_floats(const part_word& what) {
  return what.what == part_word::kind::forward || what.what == part_word::kind::backward;
}

bool are_finite(std::span<const float> values) {
  return kernels::first_non_finite(values) == values.size();
}

const char* text_of_non_finite(float x) { return std::isnan(x) ? "NaN" : "infinity"; }

std::unique_ptr<part> made_part(const line_part_options& options, const part_maker& make) {
  const auto name = fmt::format("part {}", options.part);
  return titled(options.name(), [&] {
    const user_call here{{name, {}, options.whose}};
    auto made = make();
    if (!made)
      throw std::invalid_argument{"its maker made no part"};
    return made;
  });
}

} // namespace

std::string line_part_options::name() const {
  return whose.empty() ? fmt::format("part {}", part) : fmt::format("{}'s part {}", whose, part);
}

line_part::line_part(line_part_options options, const part_maker& make, line_shell& shell)
    : options_(std::move(options)), name_(fmt::format("part {}", options_.part)), shell_(shell),
      program_(made_part(options_, make)),
      flow_({options_.part, options_.parts, options_.schedule, options_.incarnation}),
      batches_(options_.job), nothing_held_(empty_cache(options_.job, options_.tables)) {
  assert(!options_.tables.empty() && options_.micros > 0); // An empty list would name all tables.
  if (!is_first()) {
    above_.emplace();
    set_callbacks(part_side::above, above_->to_above, above_->from_above);
  }
  if (!is_last()) {
    below_.emplace();
    set_callbacks(part_side::below, below_->to_below, below_->from_below);
  }
}

line_part::~line_part() = default;

// -- lanes --------------------------------------------------------------------------------------

void line_part::set_callbacks(part_side side, out<part_word>& to, in<part_word>& from) {
  to.joined = [this, side](std::uint32_t) { note(side, &neighbour::hears_us, true); };
  to.lost = [this, side](std::uint32_t) { note(side, &neighbour::hears_us, false); };
  to.writable = [this, side](std::uint32_t) { send_waiting(side); };
  from.joined = [this, side](std::uint32_t) { note(side, &neighbour::is_heard, true); };
  from.lost = [this, side](std::uint32_t) { note(side, &neighbour::is_heard, false); };
  from.take = [this, side](parcel<part_word>&& came) { hear(side, std::move(came)); };
}

out<part_word>& line_part::lane_to(part_side side) {
  return side == part_side::above ? above_->to_above : below_->to_below;
}

void line_part::note(part_side side, bool neighbour::*which, bool is_there) {
  auto& mine = at(side);
  mine.*which = is_there;
  if (which == &neighbour::hears_us)
    mine.unsent.clear();
  decide([&] {
    if (!is_there)
      flow_.lost(side, *this);
    else if (mine.hears_us && mine.is_heard)
      flow_.joined(side, *this);
  });
}

void line_part::send(part_side to, const part_word& what) {
  if (broken_)
    return;
  parcel<part_word> made{what};
  if (has_floats(what))
    made.tensors.push_back(std::exchange(made_, {}));
  auto& waiting = at(to).unsent;
  if (!waiting.empty() || !lane_to(to).send(made, 0))
    waiting.push_back(std::move(made)); // The lane has no credit, and tells when it has.
}

void line_part::send_waiting(part_side side) {
  auto& waiting = at(side).unsent;
  while (!waiting.empty() && lane_to(side).send(waiting.front(), 0))
    waiting.pop_front();
}

void line_part::hear(part_side from, parcel<part_word>&& came) {
  if (broken_)
    return;
  if (came.tensors.size() != (has_floats(came.head) ? 1 : 0))
    return stop({errc::malformed, fmt::format("a word {} of another part has {} tensors",
                                              to_string(came.head.what), came.tensors.size())});
  if (has_floats(came.head))
    in_hand_ = std::move(came.tensors.front());
  decide([&] {
    if (auto fine = flow_.heard(from, came.head, *this); !fine)
      stop(fine.error());
  });
  in_hand_ = {};
}

/// Keeps the memory of the parcel. A lane in shared memory sends over its socket meanwhile if it
/// has no room.
void line_part::keep_input(std::uint32_t micro) {
  const auto samples = open_->cut[micro].size;
  auto& width = at(part_side::above).width;
  if (width == 0 && in_hand_.size() % samples == 0)
    width = in_hand_.size() / samples;
  if (width == 0 || in_hand_.size() != width * samples)
    return stop({errc::malformed, fmt::format("the part above sends {} floats for {} samples",
                                              in_hand_.size(), samples)});
  open_->inputs[micro] = std::exchange(in_hand_, {});
}

void line_part::keep_gradient(std::uint32_t micro) {
  const auto floats = at(part_side::below).width * open_->cut[micro].size;
  if (in_hand_.size() != floats)
    return stop({errc::malformed, fmt::format("the part below sends {} floats for an output of {}",
                                              in_hand_.size(), floats)});
  open_->gradients[micro] = std::exchange(in_hand_, {});
}

// -- the worker ---------------------------------------------------------------------------------

/// Calls the flow, and begins the next task when the flow can take it.
template <class Event>
void line_part::decide(Event event) {
  if (broken_)
    return;
  event();
  begin_task();
}

void line_part::compute(gradient_task task) {
  assert(is_first());
  if (broken_)
    return shell_.done(failed_outcome(task.number, *broken_));
  tasks_.push_back(std::move(task));
  begin_task();
}

void line_part::dropped(std::uint64_t number) {
  const auto found = std::ranges::find(tasks_, number, &gradient_task::number);
  if (found == tasks_.end())
    return;
  const bool is_begun = found == tasks_.begin() && has_begun_;
  tasks_.erase(found);
  shell_.done(failed_outcome(number, {errc::rolled_back, "the worker dropped the batch"}));
  decide([&] {
    if (!is_begun)
      return;
    has_begun_ = false;
    flow_.dropped(*this);
  });
}

void line_part::begin_task() {
  if (broken_ || tasks_.empty() || std::exchange(has_begun_, true))
    return;
  const auto& task = tasks_.front();
  const batch_cut cut{batches_.at(task.batch).samples.size(), options_.micros};
  flow_.began({task.batch, task.clock, task.generation, cut.count()}, *this);
}

void line_part::done(double loss) {
  if (broken_)
    return;
  gradient_outcome outcome;
  outcome.number = tasks_.front().number;
  check_sums();
  if (stops_as_diverged())
    return;
  outcome.finite = open_->is_finite;
  outcome.pieces = pieces();
  outcome.loss = loss;
  outcome.samples = open_->whole.samples.size();
  outcome.base_version = open_->base_version;
  open_.reset();
  tasks_.pop_front();
  has_begun_ = false;
  shell_.done(std::move(outcome));
}

// -- the store ----------------------------------------------------------------------------------

step_header line_part::header(const part_attempt& of, const part_step& step) const {
  return {options_.worker, {of.incarnation}, step.generation, step.batch, step.clock};
}

void line_part::ask(const question& about, request what) {
  if (broken_)
    return;
  asked_.emplace(++questions_, about);
  shell_.ask(questions_, std::move(what));
}

void line_part::pull(const part_attempt& of, const part_step& step) {
  if (!open_)
    begin_attempt(of, step.batch);
  if (const auto micros = open_->cut.count(); micros != step.micros)
    return stop({errc::malformed, fmt::format("the part above has {} micro-batches in a batch, and "
                                              "this one has {}",
                                              step.micros, micros)});
  request what;
  what.pull = pull_request{header(of, step), false, nothing_held_->ranges};
  ask({of, false}, std::move(what));
}

void line_part::push(const part_attempt& of, const part_step& step) {
  if (broken_)
    return;
  check_sums();
  if (stops_as_diverged())
    return;
  auto under = header(of, step);
  under.is_partial = true;
  request what;
  what.push = push_request{under, options_.tables, open_->base_version, 0.0f, pieces()};
  ask({of, true}, std::move(what));
}

void line_part::answered(std::uint64_t number, const result<reply>& what, time_point now) {
  const auto found = asked_.extract(number);
  if (!found || broken_)
    return;
  const auto [of, is_push] = found.mapped();
  const bool is_here = what && (is_push ? what->pushed.has_value() : what->pulled.has_value());
  if (is_here)
    return decide([&] {
      if (is_push)
        flow_.pushed(of, *this);
      else if (open_ && open_->of == of) {
        if (auto fine = take_values(*what->pulled); !fine)
          return stop(fine.error());
        flow_.pulled(of, *this);
      }
    });
  const auto why = what ? failure{errc::malformed, std::string{"the store's reply has no "}
                                                     + (is_push ? "pushed" : "pulled")}
                        : what.error();
  if (part_reaction_to(why.code) == part_reaction::end_job)
    return stop(why);
  flow_.failed(of, why.code, now);
}

void line_part::tick(time_point now) {
  decide([&] { flow_.tick(now, *this); });
}

result<void> line_part::take_values(const pull_reply& answer) {
  auto whole = hold(options_.job, *nothing_held_, answer, pool_);
  if (!whole)
    return whole.error();
  keep_values((*whole)->tables, answer.version);
  return {};
}

/// Keeps the values of the own tables. `all`: of all tables of the job.
void line_part::keep_values(const std::vector<float_ptr>& all, std::uint64_t version) {
  open_->base_version = version;
  for (std::size_t own = 0; own < options_.tables.size(); ++own) {
    open_->memory.push_back(all[options_.tables[own].value]);
    open_->values.emplace_back(open_->memory.back().get(), table(own).size());
  }
}

// -- attempts -----------------------------------------------------------------------------------

const table_spec& line_part::table(std::size_t own) const {
  return options_.job.tables[options_.tables[own].value];
}

void line_part::begin_attempt(const part_attempt& of, batch_id which) {
  auto whole = batches_.at(which);
  whole.notes = options_.notes;
  const batch_cut cut{whole.samples.size(), options_.micros};
  open_.emplace(attempt{.of = of, .whole = whole, .cut = cut});
}

void line_part::drop(const part_attempt&) {
  open_.reset();
  if (computing_)
    computing_->is_dropped = true;
}

void line_part::compute_forward(std::uint32_t micro) { begin_computation(micro, true); }
void line_part::compute_backward(std::uint32_t micro) { begin_computation(micro, false); }

void line_part::begin_computation(std::uint32_t micro, bool is_forward) {
  if (broken_)
    return;
  if (!open_) { // Of the first part, whose values came with its task.
    const auto& task = tasks_.front();
    begin_attempt({options_.incarnation, 0}, task.batch);
    keep_values(task.parameters, task.version);
  }
  computing_ = {micro, is_forward};
  shell_.run_soon();
}

void line_part::run() {
  if (broken_ || !computing_)
    return;
  const auto now = *std::exchange(computing_, std::nullopt);
  double loss = 0;
  if (!now.is_dropped && now.is_forward) {
    if (auto fine = forward(now.micro); !fine)
      return stop(fine.error());
  } else if (!now.is_dropped) {
    const auto found = backward(now.micro);
    if (!found)
      return stop(found.error());
    loss = *found;
  }
  decide([&] {
    if (now.is_forward)
      flow_.computed_forward(*this);
    else
      flow_.computed_backward(loss, *this);
  });
  made_ = {};
}

void line_part::say(const std::string& line) { shell_.say(line); }

void line_part::stop(const failure& why) {
  if (broken_)
    return;
  broken_ = failure{why.code, fmt::format("{}: {}", options_.name(), why.text)};
  open_.reset();
  for (const auto& each : std::exchange(tasks_, {}))
    shell_.done(failed_outcome(each.number, *broken_));
  shell_.fail(*broken_);
}

// -- the program --------------------------------------------------------------------------------

failure line_part::wrong(const std::string& text) const { return {errc::invalid_argument, text}; }

micro_batch line_part::work_of(std::uint32_t micro) const {
  const auto stretch = open_->cut[micro];
  return {open_->whole, open_->whole.samples.subspan(stretch.begin, stretch.size), micro,
          open_->cut.count()};
}

/// Computes the output of a micro-batch, `made_`. Errors: invalid_argument; job_failed (the program
/// threw).
result<void> line_part::forward(std::uint32_t micro) {
  const auto work = work_of(micro);
  const auto in = is_first() ? std::span<const float>{} : open_->inputs.at(micro).values();
  part_output out{work.samples.size()};
  try {
    const user_call here{{name_, {}, options_.whose}};
    const kernels::flush_denormals guard;
    program_->forward(work, open_->values, in, out);
  } catch (...) {
    return exception_failure();
  }
  if (is_last())
    return out.width() == 0 ? result<void>{} : wrong("it is the last one, and makes an output");
  if (out.width() == 0)
    return wrong("it makes no output: call out.of_width() in forward()");
  auto& width = at(part_side::below).width;
  if (width != 0 && width != out.width())
    return wrong(
      fmt::format("its output has a width of {}, and had one of {} before", out.width(), width));
  width = out.width();
  auto values = out.take();
  if (auto fine = check_written(values, "forward", "its output", &work, {in, {}}); !fine)
    return fine;
  made_ = tensor{std::move(values)};
  return {};
}

/// Computes the gradients of a micro-batch, adds them to the sum, and returns the share in the
/// loss. The gradient of the input is `made_`. Errors: as forward().
result<double> line_part::backward(std::uint32_t micro) {
  const auto work = work_of(micro);
  const auto in = is_first() ? std::span<const float>{} : open_->inputs.at(micro).values();
  const auto out_gradient =
    is_last() ? std::span<const float>{} : open_->gradients.at(micro).values();
  std::vector<std::shared_ptr<float>> gradients;
  std::vector<std::span<float>> spans;
  for (std::size_t own = 0; own < options_.tables.size(); ++own) {
    const auto size = table(own).size();
    gradients.push_back(pool_.floats(size));
    mark_unwritten(spans.emplace_back(gradients.back().get(), size));
  }
  std::vector<float> in_gradient(in.size());
  mark_unwritten(in_gradient);
  double loss = 0;
  try {
    const user_call here{{name_, {}, options_.whose}};
    const kernels::flush_denormals guard;
    loss = program_->backward(work, open_->values, in, out_gradient, spans, in_gradient);
  } catch (...) {
    return exception_failure();
  }
  const floats_in inputs{in, out_gradient};
  for (std::size_t own = 0; own < spans.size(); ++own) {
    const auto name = "the gradient of its table " + quote(table(own).name);
    if (auto fine = check_written(spans[own], "backward", name, nullptr, inputs); !fine)
      return fine.error();
  }
  const auto* const name = "the gradient of its input";
  if (auto fine = check_written(in_gradient, "backward", name, &work, inputs); !fine)
    return fine.error();
  add(micro, std::move(gradients));
  if (micro + 1 == work.count && options_.change)
    if (auto fine = change_sums(); !fine)
      return fine.error();
  open_->inputs.erase(micro);
  open_->gradients.erase(micro);
  made_ = tensor{std::move(in_gradient)};
  return loss * open_->cut[micro].weight;
}

/// Checks an array that the program wrote. `work`: its floats are [samples, width] of this
/// micro-batch; null: they are those of a table. Errors: invalid_argument (it did not write an
/// element, which is a NaN then).
result<void> line_part::check_written(std::span<const float> written, const char* call,
                                      const std::string& name, const micro_batch* work,
                                      const floats_in& inputs) {
  const auto bad = kernels::first_non_finite(written);
  if (bad == written.size())
    return {};
  if (const auto lacks = first_unwritten(written); lacks < written.size())
    return wrong(fmt::format("it wrote no element {} of {}", lacks, name));
  auto what = fmt::format("{}() wrote {} to {}", call, text_of_non_finite(written[bad]), name);
  if (work)
    what += fmt::format(", sample {}", work->samples[bad * work->samples.size() / written.size()]);
  blame(inputs, what);
  return {};
}

/// Notes an array that this part made not finite, unless arrays of its neighbours already were.
void line_part::blame(const floats_in& inputs, const std::string& what) {
  if (!are_finite(inputs.in) || !are_finite(inputs.out_gradient))
    open_->is_spoilt = true;
  else if (open_->blamed.empty())
    open_->blamed = what;
}

/// Adds the gradients of a micro-batch to the sum. The sum begins as the product of the first one.
void line_part::add(std::uint32_t micro, std::vector<std::shared_ptr<float>> gradients) {
  const auto weight = static_cast<float>(open_->cut[micro].weight);
  const bool is_first_one = open_->sums.empty();
  for (std::size_t own = 0; own < gradients.size(); ++own) {
    const std::span one{gradients[own].get(), table(own).size()};
    if (is_first_one)
      kernels::scale(one, weight);
    else
      kernels::axpy({open_->sums[own].get(), one.size()}, weight, one);
  }
  if (is_first_one)
    open_->sums = std::move(gradients);
}

/// Gives the sums to the program's push functions. Errors: job_failed (one of them threw).
result<void> line_part::change_sums() {
  std::vector<std::span<float>> spans;
  for (std::size_t own = 0; own < open_->sums.size(); ++own)
    spans.emplace_back(open_->sums[own].get(), table(own).size());
  try {
    options_.change(open_->whole, spans);
  } catch (...) {
    return exception_failure();
  }
  return {};
}

void line_part::check_sums() {
  for (std::size_t own = 0; own < open_->sums.size() && open_->is_finite; ++own) {
    if (are_finite({open_->sums[own].get(), table(own).size()}))
      continue;
    open_->is_finite = false;
    if (open_->blamed.empty() && !open_->is_spoilt)
      open_->blamed = "the sum of gradients of " + quote(table(own).name) + " is not finite";
  }
}

/// Counts the batch, whose sums are checked. Stops the job if this is the 20th batch in a row that
/// is not finite, and this part made the value. If the part that made it has not stopped the job,
/// since it began anew meanwhile, this part does so after one batch more. Returns whether it stops.
bool line_part::stops_as_diverged() {
  if (std::exchange(counted_, open_->whole.id) == open_->whole.id)
    return false; // The batch has begun anew.
  const auto& blamed = open_->blamed;
  const bool is_finite = open_->is_finite && blamed.empty();
  if (!diverging_.after(is_finite) || (blamed.empty() && !diverging_.is_beyond()))
    return false;
  const auto& cause = blamed.empty() ? "another part made the values" : blamed;
  stop({errc::job_failed, fmt::format("{} ({})", divergence::text(), cause)});
  return true;
}

/// Returns the sums; none if they are not finite, so that the batch changes no values of this part.
std::vector<piece> line_part::pieces() const {
  std::vector<piece> all;
  if (!open_->is_finite)
    return all;
  for (std::size_t own = 0; own < open_->sums.size(); ++own)
    all.push_back({{options_.tables[own], 0, table(own).size()}, open_->sums[own]});
  return all;
}

} // namespace troupe
