#include "actors/roles/server/expander_actor.hpp"

#include "actors/reply_batch.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

namespace troupe {

namespace {

struct expander_shell {
  using handle = kv_service::extend_with<answer_sink>;
  using pointer = handle::stateful_pointer<expander_shell>;
  using promise = caf::typed_response_promise<reply>;

  struct open_request {
    responder by;
    encoding pulls = encoding::f32; ///< Encoding of the values in its reply.
  };

  expander_shell() = default;

  promise ask(request& what) {
    auto open = self->make_response_promise<reply>();
    request_list alone{request_message{0, std::move(what)}};
    accept(open, alone.items.front());
    pass_on(std::move(alone), caf::actor_cast<answer_sink>(self));
    return open;
  }

  /// Passes on a list. If no values are to be packed, its replies go straight to `to`. All replies
  /// of a list go one way, so that they stay in order.
  void ask(request_list& what, const answer_sink& to) {
    const bool packs = std::ranges::any_of(what.items, [](const auto& each) {
      return each.what.pull && each.what.pull->packed_as != encoding::f32;
    });
    for (auto& each : what.items)
      if (packs)
        accept(numbered_responder{to, each.number}, each);
      else
        unpack(numbered_responder{to, each.number}, each);
    pass_on(std::move(what), packs ? caf::actor_cast<answer_sink>(self) : to);
  }

  void accept(responder by, request_message& what) {
    if (!unpack(by, what))
      return;
    what.number = next_number++;
    pending.emplace(
      what.number,
      open_request{std::move(by), what.what.pull ? what.what.pull->packed_as : encoding::f32});
  }

  /// Unpacks a push. On failure it answers with the error, empties the request and returns false.
  bool unpack(responder by, request_message& what) {
    auto& push = what.what.push;
    const auto fine = push ? coder->unpack(*push) : result<void>{};
    if (fine)
      return true;
    answers.add(by, fine.error());
    what.what = {};
    return false;
  }

  void pass_on(request_list what, const answer_sink& to) {
    std::erase_if(what.items, [](const auto& each) { return !each.what.push && !each.what.pull; });
    if (!what.items.empty())
      send(std::move(what), to);
    answers.send(self);
  }

  void send(request_list what, const answer_sink& to) {
    if (self->current_mailbox_element()->mid.is_urgent_message())
      self->send<caf::message_priority::high>(next, std::move(what), to);
    else
      self->send(next, std::move(what), to);
  }

  void answered(answer_list& what) {
    for (auto& each : what.items)
      std::visit([this](auto& x) { close(x.number, std::move(x.what)); }, each);
    answers.send(self);
  }

  void close(std::uint64_t number, std::variant<reply, failure> outcome) {
    auto found = pending.extract(number);
    if (!found)
      return;
    auto& [by, pulls] = found.mapped();
    auto* came = std::get_if<reply>(&outcome);
    if (came != nullptr && came->pulled && pulls != encoding::f32)
      coder->pack(*came->pulled, pulls);
    answers.add(by, std::move(outcome));
  }

  pointer self = nullptr;
  kv_service next;
  std::optional<codec> coder;
  std::unordered_map<std::uint64_t, open_request> pending;
  std::uint64_t next_number = 1;
  reply_batcher answers;

  static inline const char* name = "expander";
};

static_assert(!std::is_constructible_v<expander_shell, caf::event_based_actor*>);

expander_shell::handle::behavior_type run_expander(expander_shell::pointer self, job_spec job,
                                                   kv_service next) {
  auto& state = self->state;
  state.self = self;
  state.next = std::move(next);
  state.coder.emplace(std::move(job));
  self->set_down_handler([self](caf::down_msg&) { self->quit(); });
  self->monitor(state.next);
  return {
    [&state](request& what) { return state.ask(what); },
    [&state](request_list& what, const answer_sink& to) { state.ask(what, to); },
    [&state](answer_list& what) { state.answered(what); },
  };
}

} // namespace

kv_service spawn_expander(caf::actor_system& system, job_spec job, kv_service next) {
  return system.spawn(run_expander, std::move(job), std::move(next));
}

} // namespace troupe
