// Simulates lines of a pipeline, in one thread and virtual time. The deciders (part_flow) are the
// real ones; lanes, workers and servers are models. Activations, gradients and values are numbers,
// so that the oracle knows each sum. Lanes, parts and requests fail as a seed says.
#pragma once

#include "actors/protocol/pipeline/part_flow.hpp"
#include "cli/sim/lanes/lane_world.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace troupe::sim {

/// Counts the events of a history, so that a run can show that it tested something.
struct pipeline_tally : lane_tally {
  std::uint64_t events = 0, batches = 0, micros = 0, attempts = 0, ended = 0;
  std::uint64_t kills = 0, first_kills = 0;
  std::uint64_t taken_away = 0, not_applied = 0, failed_pulls = 0, failed_pushes = 0;
  std::uint64_t duplicates = 0, fenced = 0, not_listed = 0, old_words = 0, old_results = 0,
                bounds_met = 0;
};

/// One history: faults for a time, then quiet, in which all batches have to be applied.
class pipeline_world final : public lane_world {
public:
  using tally = pipeline_tally;
  static constexpr std::string_view name = "pipeline";
  static constexpr std::array<std::string_view, 2> kinds{"fill-drain", "1f1b"};
  static const std::vector<minimum<tally>> minima;

  /// `no_faults`: without faults.
  explicit pipeline_world(std::uint64_t seed, bool no_faults = false, trace_function trace = {});
  ~pipeline_world();

  /// Runs the history. Throws violation.
  void run();
  const tally& counted() const { return tally_; }
  std::size_t kind() const { return schedule_.order == micro_order::fill_drain ? 0 : 1; }

private:
  class shell;
  struct part;
  struct parcel;
  struct request;

  /// The start of a line's worker that a server has listed, and earlier ones.
  struct listing {
    std::uint64_t incarnation = 0; ///< 0: none is listed.
    std::uint64_t number = 0;      ///< Of the coordinator's word, which grows with each start.
    std::set<std::uint64_t> departed;
  };
  /// The server's values of a part's tables.
  struct table {
    std::uint64_t value = 0;
    std::set<std::uint64_t> applied;         ///< Batches.
    std::map<std::uint32_t, listing> listed; ///< By line.
  };
  /// A line, as the coordinator and the oracle know it.
  struct line_state {
    std::deque<std::uint64_t> leased;  ///< Batches; the worker is at the first one.
    std::uint32_t quiet_batches = 0;   ///< That it still gets in the quiet.
    std::uint64_t losses = 0;          ///< Ends of lanes that were lost.
    std::uint64_t broken_attempts = 0; ///< Attempts of the first part that broke.
  };
  /// Names an attempt: line, incarnation, number.
  using attempt_name = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
  /// An attempt, as the oracle knows it.
  struct attempt_record {
    part_step step;
    std::vector<std::optional<std::uint64_t>> values; ///< By part.
  };
  /// The numbers that one part computes for a micro-batch.
  struct micro_values {
    std::uint64_t input_gradient = 0;
    double loss = 0;
  };

  // Parts, workers, faults: pipeline_world.cpp.
  void start_part(std::uint32_t where);
  void kill_part(part& victim, bool is_quick);
  void post_to(const part& who, time_point when, std::function<void(part&)> what);
  void begin_work(part& who);
  void pull_for(part& who);
  void idle_for_a_while(part& who);
  void take_away(part& who);
  void push_first(part& who);
  void worker_heard(part& who, const request& what, bool is_good, std::uint64_t value);
  void inject_faults();
  void take_leases();
  void heal();
  bool is_over();

  // Shells and servers: pipeline_servers.cpp.
  void report(part& at);
  void ask(const part& who, const request& what);
  void list(std::uint32_t line, std::uint64_t incarnation);
  std::optional<errc> serve(const request& what, std::uint64_t& value);
  void answer(part& who, const request& what, std::optional<errc> failed, std::uint64_t value);

  // Lanes: pipeline_lanes.cpp.
  end& end_at(std::uint32_t where) override;
  void joined(end& at, std::uint32_t neighbour) override;
  void lost(end& at, std::uint32_t neighbour) override;
  void carry(part& from, part_side to, const part_word& what);
  void deliver(part& to, part_side from, const parcel& what);

  // -- the oracle: pipeline_checks.cpp --
  attempt_record& record_of(const part& who, const part_attempt& of);
  void note_values(const part& who, const part_attempt& of, std::uint64_t value);
  /// Returns the right numbers of each part for a micro-batch.
  std::vector<micro_values> expected(const attempt_record& of, std::uint32_t micro) const;
  void check_kept(const part& who);
  void check_sum(const part& who, const part_attempt& of);
  void check_done(const part& who, double loss);
  void check_end();

  micro_schedule schedule_;
  std::uint32_t parts_ = 2; ///< Of each line.
  double kill_rate_, pause_rate_, take_rate_, request_failure_;
  std::uint64_t request_us_max_, micros_max_;
  std::uint64_t starts_ = 0, lists_ = 0, batches_ = 0;

  std::vector<std::unique_ptr<part>> all_; ///< Line after line.
  std::vector<line_state> lines_;
  std::vector<table> tables_;       ///< By part.
  std::deque<std::uint64_t> open_;  ///< Batches without a lease, of leases that ended.
  std::set<std::uint64_t> applied_; ///< Batches that the coordinator was told of.
  std::map<attempt_name, attempt_record> records_;
  time_point ended_at_{0};
  tally tally_;
};

} // namespace troupe::sim
