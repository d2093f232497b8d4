#include "actors/protocol/coordinator/membership.hpp"

#include <cassert>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// Five status intervals: a member that is silent for this time while its successor reports is most
/// likely dead.
constexpr auto doubt = 500ms;

member_id slot_of(const member_id& who) {
  return traits_of(who.role).has_slots ? member_id{who.role, who.index, {}} : who;
}

} // namespace

std::string name_of(const member_id& who) {
  return std::string{traits_of(who.role).name} + " " + std::to_string(who.index);
}

std::optional<member_id> membership::gives_way(const member_id& sender, time_point now) const {
  const auto slot = members_.find(slot_of(sender));
  if (slot == members_.end() || slot->second.id == sender || dead_.contains(sender))
    return std::nullopt;
  const auto& holder = slot->second;
  const bool silent = !traits_of(holder.id.role).holds_values && now - holder.heard > doubt;
  return holder.disconnected || silent ? std::optional{holder.id} : std::nullopt;
}

membership::standing membership::hear(const status_message& what, time_point now) {
  if (dead_.contains(what.from))
    return standing::dead;
  const auto [slot, is_free] = members_.try_emplace(slot_of(what.from));
  auto& holder = slot->second;
  if (is_free) {
    holder.id = what.from;
    holder.address = what.address;
    waiting_.erase(what.from);
  } else if (holder.id != what.from) {
    const auto since = waiting_.try_emplace(what.from, now).first->second;
    return holder.heard > since + doubt ? standing::refused : standing::waiting;
  } else if (what.sequence <= holder.sequence) {
    return standing::repeated;
  }
  holder.sequence = what.sequence;
  holder.heard = now;
  holder.disconnected.reset();
  holder.rss_bytes_max = what.rss_bytes_max;
  assert(holder.id == what.from && slot_of(holder.id) == slot->first);
  return is_free ? standing::joined : standing::news;
}

void membership::on_disconnect(const member_id& who, time_point now) {
  if (auto* holder = find(who); holder != nullptr && !holder->disconnected)
    holder->disconnected = now;
}

void membership::leave(const member_id& who) {
  if (find(who) != nullptr)
    members_.erase(slot_of(who));
}

bool membership::mark_dead(const member_id& who) {
  const bool was_member = find(who) != nullptr;
  dead_.insert(who);
  waiting_.erase(who);
  leave(who);
  assert(find(who) == nullptr);
  return was_member;
}

std::vector<member_id> membership::silent(time_point now, std::chrono::milliseconds timeout) const {
  std::vector<member_id> all;
  for (const auto& [slot, holder] : members_)
    if (now - holder.heard > timeout)
      all.push_back(holder.id);
  return all;
}

void membership::extend_deadlines(time_point gap) {
  for (auto& [slot, holder] : members_) {
    holder.heard += gap;
    if (holder.disconnected)
      *holder.disconnected += gap;
  }
  for (auto& [who, since] : waiting_)
    since += gap;
}

member_entry* membership::find(const member_id& who) {
  const auto slot = members_.find(slot_of(who));
  return slot != members_.end() && slot->second.id == who ? &slot->second : nullptr;
}

} // namespace troupe
