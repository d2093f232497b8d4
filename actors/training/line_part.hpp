// Runs one part of a pipeline: calls the program's part, keeps its inputs, adds up its gradients,
// and exchanges words and floats with the parts above and below.
#pragma once

#include "actors/protocol/pipeline/batch_cut.hpp"
#include "actors/protocol/pipeline/part_flow.hpp"
#include "actors/training/cached_values.hpp"
#include "actors/training/divergence.hpp"
#include "actors/training/gradient_computer.hpp"
#include "actors/training/part.hpp"
#include "actors/training/ports.hpp"
#include "actors/training/sampler.hpp"
#include "base/buffer.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct line_part_options {
  job_spec job;
  std::vector<table_id> tables; ///< The part's own ones, in the order of its spec.
  std::uint32_t part = 0;
  std::uint32_t parts = 1;  ///< Of the line.
  std::uint32_t micros = 1; ///< Micro-batches of a batch; a batch with fewer samples has fewer.
  micro_schedule schedule = {};
  worker_id worker = {};         ///< Of the line.
  std::uint64_t incarnation = 0; ///< Of this part's process; of the worker in the first part.
  std::string whose = {};        ///< Names its process, "line:1"; empty: nothing does.
  node_notes notes = {};         ///< Taken by the program's part. They must outlive this object.
  /// Changes the sums of the own tables for a batch before they are pushed; null: nothing does. May
  /// throw.
  std::function<void(const batch&, mutable_tensors)> change = {};

  /// Returns the part's name in lines, "line:1's part 1".
  std::string name() const;
};

/// Serves a line_part. Called within calls of the line_part, and must not call it.
class line_shell {
public:
  virtual ~line_shell() = default;
  /// Asks the store. line_part::answered() follows with this number. Later parts only.
  virtual void ask(std::uint64_t number, request what) = 0;
  /// Has run() called soon, after the parcels that have come meanwhile.
  virtual void run_soon() = 0;
  /// Ends a task of the first part.
  virtual void done(gradient_outcome what) = 0;
  /// Ends the job for this reason.
  virtual void fail(const failure& why) = 0;
  /// Says a line to a person. First part only.
  virtual void say(const std::string& line) = 0;
};

/// The ports of a part towards the part above it.
struct ports_above {
  out<part_word> to_above{"to_above"};
  in<part_word> from_above{"from_above"};
};

/// The ports of a part towards the part below it.
struct ports_below {
  out<part_word> to_below{"to_below"};
  in<part_word> from_below{"from_below"};
};

/// All calls come on one thread, those of the ports too.
///
/// The bytes of a sum depend on the batch, the values and the number of micro-batches alone: each
/// micro-batch's gradient is multiplied by its share of the samples, and added in the order of the
/// micro-batches.
///
/// A part whose sum is not finite pushes no values for the batch: it counts as done and changes no
/// values of this part. Parts decide that for their own tables. Each part checks all arrays that it
/// computes. Too many such batches in a row end the job, by the part that computed NaN or infinity
/// from finite numbers.
///
/// Capacity: part_flow's inputs, and as many outputs as the lane gives no credit for.
class line_part : part_effects {
public:
  /// Makes the program's part. Throws std::runtime_error with the number of the part and the text
  /// if that throws.
  line_part(line_part_options options, const part_maker& make, line_shell& shell);
  ~line_part() override;

  /// Returns its ports, which exist from the constructor to the end; null: there is no such part.
  ports_above* above() { return above_ ? &*above_ : nullptr; }
  ports_below* below() { return below_ ? &*below_ : nullptr; }

  /// Computes the gradient of the part's tables. `task.parameters` has one array for each table of
  /// the job, of which those of the own tables are read. line_shell::done() follows. First part
  /// only. Tasks are done in order.
  void compute(gradient_task task);
  /// Ends a task whose gradient the worker does not want any more. line_shell::done() follows with
  /// a failure, unless it was called before. First part only.
  void dropped(std::uint64_t number);
  /// Does one computation.
  void run();
  /// Takes the answer of the store.
  void answered(std::uint64_t number, const result<reply>& what, time_point now);
  /// Repeats failed questions. Call it at least each 20 ms in later parts.
  void tick(time_point now);

private:
  /// The lanes to and from a neighbour.
  struct neighbour {
    bool hears_us = false, is_heard = false;
    std::deque<parcel<part_word>> unsent; ///< Of the present session, which silence ends.
    std::size_t width = 0;                ///< Of the floats on these lanes; 0: none came so far.
  };
  /// The memory of an attempt.
  struct attempt {
    part_attempt of;
    batch whole;
    batch_cut cut;
    std::vector<std::span<const float>> values = {}; ///< Of the own tables.
    std::vector<float_ptr> memory = {};              ///< Of `values`.
    std::uint64_t base_version = 0;
    std::map<std::uint32_t, tensor> inputs = {}, gradients = {}; ///< By micro-batch.
    std::vector<std::shared_ptr<float>> sums = {};               ///< Of the own tables.
    bool is_finite = true;   ///< Of the sums, once check_sums() has looked at them.
    bool is_spoilt = false;  ///< A neighbour sent NaN or infinity.
    std::string blamed = {}; ///< The first array that this part made not finite; empty: none.
  };
  struct computation {
    std::uint32_t micro = 0;
    bool is_forward = false;
    bool is_dropped = false; ///< Its attempt has ended.
  };
  /// Arrays of the neighbours for a computation.
  struct floats_in {
    std::span<const float> in = {}, out_gradient = {};
  };
  struct question {
    part_attempt of;
    bool is_push = false;
  };

  // -- effects of the flow --
  void send(part_side to, const part_word& what) override;
  void keep_input(std::uint32_t micro) override;
  void keep_gradient(std::uint32_t micro) override;
  void pull(const part_attempt& of, const part_step& step) override;
  void compute_forward(std::uint32_t micro) override;
  void compute_backward(std::uint32_t micro) override;
  void push(const part_attempt& of, const part_step& step) override;
  void done(double loss) override;
  void drop(const part_attempt& which) override;
  void say(const std::string& line) override;

  void set_callbacks(part_side side, out<part_word>& to, in<part_word>& from);
  void note(part_side side, bool neighbour::*which, bool is_there);
  void send_waiting(part_side side);
  void hear(part_side from, parcel<part_word>&& came);
  template <class Event>
  void decide(Event event);
  void begin_task();
  void begin_attempt(const part_attempt& of, batch_id which);
  result<void> take_values(const pull_reply& answer);
  void keep_values(const std::vector<float_ptr>& all, std::uint64_t version);
  void begin_computation(std::uint32_t micro, bool is_forward);
  result<void> forward(std::uint32_t micro);
  result<double> backward(std::uint32_t micro);
  result<void> check_written(std::span<const float> written, const char* call,
                             const std::string& name, const micro_batch* work,
                             const floats_in& inputs);
  void blame(const floats_in& inputs, const std::string& what);
  result<void> change_sums();
  void add(std::uint32_t micro, std::vector<std::shared_ptr<float>> gradients);
  void check_sums();
  bool stops_as_diverged();
  std::vector<piece> pieces() const;
  micro_batch work_of(std::uint32_t micro) const;
  void ask(const question& about, request what);
  step_header header(const part_attempt& of, const part_step& step) const;
  void stop(const failure& why);

  bool is_first() const { return options_.part == 0; }
  bool is_last() const { return options_.part + 1 == options_.parts; }
  neighbour& at(part_side side) { return neighbours_[side == part_side::above ? 0 : 1]; }
  out<part_word>& lane_to(part_side side);
  const table_spec& table(std::size_t own) const;
  failure wrong(const std::string& text) const;

  const line_part_options options_;
  const std::string name_; ///< "part 1", for names of calls.
  line_shell& shell_;
  std::optional<ports_above> above_;
  std::optional<ports_below> below_;
  std::unique_ptr<part> program_;
  part_flow flow_;
  sampler batches_;
  buffer_pool pool_;
  cached_ptr nothing_held_;
  std::array<neighbour, 2> neighbours_;
  std::deque<gradient_task> tasks_; ///< Of the first part; the flow has the first one, ...
  bool has_begun_ = false;          ///< ... if this is set.
  std::optional<attempt> open_;
  std::optional<computation> computing_;
  std::map<std::uint64_t, question> asked_; ///< By number.
  std::uint64_t questions_ = 0;
  tensor in_hand_; ///< The floats of the word that is heard.
  tensor made_;    ///< The floats that the last computation yielded.
  divergence diverging_;
  std::optional<batch_id> counted_; ///< The newest batch that `diverging_` has counted.
  std::optional<failure> broken_;   ///< Why this part does nothing any more.
};

} // namespace troupe
