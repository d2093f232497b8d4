#include "actors/protocol/coordinator/membership.hpp"

#include <utility>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// Five report intervals: who is silent for so long while its successor talks is most likely dead.
constexpr auto doubt = 500ms;

member_id seat_of(const member_id& who) {
  return who.role == role::observer ? who : member_id{who.role, who.index, {}};
}

} // namespace

std::string name_of(const member_id& who) {
  const char* names[] = {"coordinator", "server", "worker", "observer"};
  return std::string{names[static_cast<std::size_t>(who.role) % 4]} + " "
         + std::to_string(who.index);
}

std::optional<member_id> membership::gives_way(const member_id& sender, time_point now) const {
  const auto seat = members_.find(seat_of(sender));
  if (seat == members_.end() || seat->second.id == sender || buried_.contains(sender))
    return std::nullopt;
  const auto& holder = seat->second;
  const bool silent = holder.id.role == role::worker && now - holder.heard > doubt;
  return holder.unplugged || silent ? std::optional{holder.id} : std::nullopt;
}

membership::standing membership::hear(const report& what, time_point now) {
  if (buried_.contains(what.from))
    return standing::buried;
  const auto [seat, is_free] = members_.try_emplace(seat_of(what.from));
  auto& holder = seat->second;
  if (is_free) {
    holder.id = what.from;
    waiting_.erase(what.from);
  } else if (holder.id != what.from) {
    const auto since = waiting_.try_emplace(what.from, now).first->second;
    return holder.heard > since + doubt ? standing::refused : standing::waiting;
  } else if (what.sequence <= holder.sequence) {
    return standing::repeated;
  }
  holder.sequence = what.sequence;
  holder.heard = now;
  holder.unplugged.reset();
  holder.rss_bytes_max = what.rss_bytes_max;
  return is_free ? standing::joined : standing::news;
}

void membership::unplug(const member_id& who, time_point now) {
  if (auto* holder = find(who); holder != nullptr && !holder->unplugged)
    holder->unplugged = now;
}

void membership::leave(const member_id& who) {
  if (find(who) != nullptr)
    members_.erase(seat_of(who));
}

bool membership::bury(const member_id& who) {
  const bool seated = find(who) != nullptr;
  buried_.insert(who);
  waiting_.erase(who);
  leave(who);
  return seated;
}

std::vector<member_id> membership::silent(time_point now, std::chrono::milliseconds timeout) const {
  std::vector<member_id> all;
  for (const auto& [seat, holder] : members_)
    if (now - holder.heard > timeout)
      all.push_back(holder.id);
  return all;
}

void membership::forgive(time_point gap) {
  for (auto& [seat, holder] : members_) {
    holder.heard += gap;
    if (holder.unplugged)
      *holder.unplugged += gap;
  }
  for (auto& [who, since] : waiting_)
    since += gap;
}

member_record* membership::find(const member_id& who) {
  const auto seat = members_.find(seat_of(who));
  return seat != members_.end() && seat->second.id == who ? &seat->second : nullptr;
}

} // namespace troupe
