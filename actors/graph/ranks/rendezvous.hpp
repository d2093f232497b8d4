// Tracks how the ranks of a communicator come together: which links exist, and which ranks have
// reported all of theirs. A plain state machine: no socket, no clock.
//
// Ranks may begin, give up and begin again at any time, so a link may belong to a rank that has
// given up. A communicator is formed once all ranks have reported links with all others.
#pragma once

#include "actors/transport/transport.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe {

class rendezvous {
public:
  rendezvous(std::uint32_t rank, std::uint32_t ranks);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(others_.size()); }

  // -- what happens --
  /// This rank tries to connect to another one.
  void connecting(std::uint32_t other, link_id link) { connecting_[other] = link; }
  /// A link with `other` is open, in place of an earlier one.
  void opened(std::uint32_t other, link_id link);
  /// A link is lost. Returns its rank; nullopt if it had reached none.
  std::optional<std::uint32_t> lost(link_id link);
  /// A rank reports that it has all links.
  void complete(std::uint32_t other) { others_[other].is_complete = true; }

  // -- what follows --
  /// Returns the ranks to connect to: higher ranks without a link or an attempt. Lower ranks
  /// connect by themselves.
  std::vector<std::uint32_t> wanted() const;
  /// Returns true once when this rank has all links, which the others are to be told. After the
  /// loss of a link it returns true once more.
  bool take_complete();
  bool is_formed() const { return told_ && !first_missing(); }
  /// Returns a rank that is missing for a communicator; nullopt if there is none.
  std::optional<std::uint32_t> first_missing() const;

  // -- the links --
  std::optional<link_id> link_to(std::uint32_t other) const { return others_[other].link; }
  std::optional<std::uint32_t> rank_at(link_id link) const;

private:
  struct entry {
    std::optional<link_id> link;
    bool is_complete = false;
  };

  void forget(std::uint32_t other);
  bool has_all_links() const;

  std::uint32_t rank_;
  std::vector<entry> others_; ///< By rank; the own entry stays empty.
  std::map<link_id, std::uint32_t> ranks_of_;
  std::map<std::uint32_t, link_id> connecting_;
  bool told_ = false; ///< The others know that this rank is complete.
};

} // namespace troupe
