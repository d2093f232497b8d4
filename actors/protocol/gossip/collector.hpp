// Decides for the collector of a gossip job: which copies of peers are in the mean, which batches
// are applied, and when the mean is read or written. A plain state machine, without values.
#pragma once

#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/batch_set.hpp"
#include "serialization/ids.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

struct collector_options {
  /// Time after a restart in which peers send their copies, before the mean is used.
  std::chrono::milliseconds settle_time{1000};
  /// Batches of the job. When all are in a checkpoint, the mean changes no more.
  std::uint64_t batches = std::numeric_limits<std::uint64_t>::max();
  /// A copy leaves the mean when others were renewed this many times since, on average.
  std::uint64_t renewals_max = 30;
};

// -- effects --

/// Load the values of a checkpoint, or the initial ones (0). loaded() follows, with the same load.
struct load_values_effect {
  std::uint64_t load = 0;
  std::uint64_t checkpoint = 0;
};
/// Write the mean, with applied(), as this checkpoint. written() follows.
struct write_mean_effect {
  std::uint64_t checkpoint = 0;
};
/// Say a line to a person: the graph of the living peers falls into parts (or no longer: empty).
struct graph_cut_effect {
  std::string text;
};
using collector_effect = std::variant<load_values_effect, write_mean_effect, graph_cut_effect>;
using collector_effects = std::vector<collector_effect>;

/// To the coordinator it is a server with one shard. The values of a checkpoint count only as long
/// as there is no copy of a peer.
///
/// applied() only grows, and has all batches of each copy that ever was in the mean. At most one
/// copy of each peer is in the mean: that of its newest incarnation.
class collector {
public:
  collector(const member_id& self, neighbour_graph graph, collector_options options = {});

  // -- events --
  void reconcile(const desired_server& what, time_point now, collector_effects& effects);
  /// The batches of the checkpoint are applied in its values; or an error says why it cannot be
  /// restored. Returns whether the values are those to begin with.
  bool loaded(std::uint64_t load, const result<batch_set>& what, time_point now);
  void written(std::uint64_t checkpoint, const result<checkpoint_part>& done);
  /// A peer sent its copy. Returns whether the copy is to be kept: it is not from an incarnation
  /// that was replaced, and the last checkpoint is not written yet.
  bool copied(worker_id peer, incarnation_id incarnation, const batch_set& applied);
  /// A peer can be reached, or no longer. Says if the graph of the living peers is cut by a death,
  /// once all have been there.
  void joined(worker_id peer, collector_effects& effects);
  void lost(worker_id peer, collector_effects& effects);
  /// A peer wants values to begin with.
  void wants(worker_id peer) { wanting_.insert(peer); }
  /// The mean was sent to a peer that wants values.
  void started(worker_id peer) { wanting_.erase(peer); }
  /// Writes a checkpoint that was asked for before the mean could be used.
  void tick(time_point now, collector_effects& effects);

  // -- state --
  /// Returns whether the mean may be read and given to peers that start.
  bool serves(time_point now) const;
  /// Returns the peers to which the mean is to be sent now.
  std::vector<worker_id> to_start(time_point now) const;
  /// Returns the peers whose copies are in the mean; empty: the loaded values are.
  std::vector<worker_id> in_mean() const;
  const batch_set& applied() const { return applied_; }
  generation_id generation() const { return generation_; }
  /// Returns its shard in a status. Requires: reconcile() was called.
  replica_status report(time_point now) const;

private:
  struct copy {
    incarnation_id incarnation;
    std::uint64_t renewed = 0; ///< Value of renewals_ then.
  };

  void write_if_due(time_point now, collector_effects& effects);
  void look_at_graph(collector_effects& effects);

  const member_id self_;
  const neighbour_graph graph_;
  const collector_options options_;
  generation_id generation_;
  desired_chain chain_;
  std::vector<clock_entry> workers_;
  std::uint64_t wanted_checkpoint_ = 0; ///< The newest one that was asked for.
  std::uint64_t begun_checkpoint_ = 0;  ///< The newest one whose writing has begun.
  bool is_final_ = false;               ///< It has all batches of the job.
  checkpoint_part part_;
  std::uint64_t checkpoint_failed_ = 0;
  std::string checkpoint_failure_;

  std::uint64_t loads_ = 0;
  std::uint64_t loads_from_ = 0; ///< The checkpoint of the present load.
  bool is_new_ = false;          ///< The shard had no history when this generation began.
  std::optional<time_point> loaded_at_;
  std::optional<failure> failed_;

  std::map<worker_id, copy> copies_;
  std::set<std::pair<worker_id, incarnation_id>> replaced_; ///< Incarnations with a successor.
  std::uint64_t renewals_ = 0;
  batch_set applied_;

  std::set<worker_id> wanting_; ///< Peers that want values to begin with.
  std::vector<bool> living_;    ///< By peer.
  bool is_gathered_ = false;    ///< All peers were there at a time.
  std::string cut_;             ///< As said last.
};

} // namespace troupe
