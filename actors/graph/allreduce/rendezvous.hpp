// How the ranks of a team come together: who has a link with whom, and who says that it has all of
// its links. A plain state machine: no socket, no clock.
//
// Ranks may begin, give up and begin again at any time, so that a link may be of one that has given
// up. A team is formed once all say that they have links with all others.
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
  /// This rank tries to reach another one.
  void connecting(std::uint32_t other, link_id link) { connecting_[other] = link; }
  /// A link with `other`, in place of an earlier one.
  void opened(std::uint32_t other, link_id link);
  /// Whose link that was; none: nobody was reached by it.
  std::optional<std::uint32_t> lost(link_id link);
  /// It says that it has all links.
  void complete(std::uint32_t other) { others_[other].is_complete = true; }

  // -- what follows --
  /// To be reached: those behind this rank that it has no link with and does not try to reach;
  /// those before it come by themselves.
  std::vector<std::uint32_t> wanted() const;
  /// True once, when this rank has all links: the others are to be told. Again where it lost one.
  bool take_complete();
  bool is_formed() const { return told_ && !first_missing(); }
  /// A rank without which there is no team yet.
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
  std::vector<entry> others_; ///< By rank; that of this one stays empty.
  std::map<link_id, std::uint32_t> ranks_of_;
  std::map<std::uint32_t, link_id> connecting_;
  bool told_ = false; ///< The others were told that this rank is complete.
};

} // namespace troupe
