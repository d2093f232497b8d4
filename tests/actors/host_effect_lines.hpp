// Names effects of a replica_host and its parts as lines of text.
#pragma once

#include "actors/protocol/server/host_effects.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

namespace troupe::test {

struct host_effect_text {
  static std::string number(std::uint64_t value) { return " " + std::to_string(value); }

  std::string operator()(const load_effect& x) const {
    return "load" + number(x.load) + " checkpoint" + number(x.checkpoint);
  }
  std::string operator()(const recall_effect& x) const { return "recall" + number(x.load); }
  std::string operator()(const replay_effect& x) const { return "replay" + number(x.load); }
  std::string operator()(const keep_past_effect&) const { return "keep past"; }
  std::string operator()(const save_effect& x) const {
    static constexpr std::array purposes{"starting", "joining", "checkpoint", "later"};
    return std::string{"save "} + purposes.at(static_cast<std::size_t>(x.id.purpose))
           + (x.base ? " base" : "") + (x.begins_log ? " log" : "")
           + (x.keeps_previous ? " beside the last one" : "");
  }
  std::string operator()(const send_copy_effect& x) const {
    return std::string{x.fresh ? "pin and " : ""} + "send part" + number(x.what.part) + " to"
           + number(x.to.index);
  }
  std::string operator()(const end_copy_effect&) const { return "end copy"; }
  std::string operator()(const ask_copy_effect& x) const {
    return "ask copy" + number(x.config.value);
  }
  std::string operator()(const acknowledge_effect& x) const {
    return "acknowledge" + number(x.push.value);
  }
  std::string operator()(const reply_effect& x) const {
    return "reply" + number(x.request.value) + (x.pushed ? " pushed" : "")
           + (x.read ? " read" + number(x.read->version) : "");
  }
  std::string operator()(const refuse_effect& x) const {
    return "refuse" + number(x.request.value) + " " + to_string(x.why.code);
  }
  std::string operator()(const report_effect&) const { return "report"; }
  std::string operator()(const note_effect& x) const { return "note: " + x.text; }
  template <class Other>
  std::string operator()(const Other&) const {
    return "another effect";
  }
};

/// Returns one line for each effect of `event(effects)`.
template <class Event>
std::vector<std::string> lines_of(Event event) {
  host_effects effects;
  event(effects);
  std::vector<std::string> all;
  for (const auto& each : effects)
    all.push_back(std::visit(host_effect_text{}, each));
  return all;
}

} // namespace troupe::test
