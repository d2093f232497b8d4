// Has the lanes of the simulated pipeline, and the words on them.
#include "cli/sim/pipeline/pipeline_world_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

lane_world::end& pipeline_world::end_at(std::uint32_t where) { return *all_[where]; }

void pipeline_world::joined(end& at, std::uint32_t neighbour) {
  auto& who = static_cast<part&>(at);
  who.flow->joined(side_of(who.place, neighbour), *who.effects);
}

void pipeline_world::lost(end& at, std::uint32_t neighbour) {
  auto& who = static_cast<part&>(at);
  ++lines_[who.line].losses;
  who.flow->lost(side_of(who.place, neighbour), *who.effects);
}

/// Sends a word to a neighbour, with the result that is being reported.
void pipeline_world::carry(part& from, part_side side, const part_word& what) {
  parcel sent{what, 0};
  if (what.what == part_word::kind::forward || what.what == part_word::kind::backward) {
    require(from.reported && from.reported->micro == what.micro,
            "words: a result that is not there");
    sent.value = from.reported->result;
  }
  const auto to = side == part_side::above ? from.place - 1 : from.place + 1;
  lane_world::send(
    from, to, [this, at = side_of(to, from.place), to, sent] { deliver(*all_[to], at, sent); });
}

void pipeline_world::deliver(part& to, part_side from, const parcel& what) {
  using kind = part_word::kind;
  if (is_traced())
    note("part " + std::to_string(to.place) + " hears " + to_string(what.word.what) + " "
         + std::to_string(what.word.micro) + " of " + std::to_string(what.word.of.incarnation) + "."
         + std::to_string(what.word.of.number));
  const auto* const present = to.flow->present();
  if (what.word.what == kind::backward || what.word.what == kind::forward)
    tally_.old_words += present != nullptr && *present != what.word.of;
  to.in_hand = &what;
  const auto fine = to.flow->heard(from, what.word, *to.effects);
  to.in_hand = nullptr;
  require(static_cast<bool>(fine), "words: " + (fine ? "" : fine.error().text));
}

} // namespace troupe::sim
