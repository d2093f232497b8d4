#include "actors/transport/engine.hpp"

#include "actors/transport/streams/unix_stream.hpp"
#include "base/system/named_thread.hpp"
#include "serialization/wire.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace troupe {

namespace {

/// Holds a hundred small messages, yet copying the start of a tensor out of it costs little.
constexpr std::size_t staging_bytes = std::size_t{16} << 10;
/// Connections accepted at a time, so that many new peers do not delay the existing links.
constexpr int accepts_max = 64;
/// Pause before the next attempt when no descriptors for new connections are left.
constexpr std::chrono::milliseconds accept_pause{100};

/// Fills in empty callbacks, so that callers need no checks.
link_events complete(link_events events) {
  if (!events.opened)
    events.opened = [](link_id, const hello&, const std::string&) {};
  if (!events.received)
    events.received = [](link_id, message) {};
  if (!events.lost)
    events.lost = [](link_id, const failure&) {};
  if (!events.rejected)
    events.rejected = [](const std::string&, const failure&) {};
  if (!events.settle)
    events.settle = [] {};
  return events;
}

} // namespace

transport::engine::engine(hello self, link_events events, transport_options options)
    : context_(std::move(self), complete(std::move(events)), std::move(options), staging_bytes),
      // One pass over the links handles deadlines this close together.
      check_interval_min_(std::clamp<clock::duration>(
        std::min(context_.options.silence_timeout, context_.options.handshake_timeout) / 64,
        std::chrono::milliseconds{1}, std::chrono::milliseconds{50})),
      names_(context_.options.resolve),
      thread_(detail::named_thread("troupe-links", [this] { run(); })) {}

transport::engine::~engine() { stop(); }

void transport::engine::stop() {
  if (!thread_.joinable())
    return;
  stopping_ = true;
  context_.poll.wake();
  thread_.join();
  names_.stop();
}

// -- any thread -------------------------------------------------------------------------------

result<endpoint> transport::engine::serve(descriptor socket) {
  auto where = local_endpoint(socket.get());
  if (!where)
    return where;
  add_listener(std::move(socket), *where);
  if (auto unix_socket =
        context_.options.unix_sockets ? detail::open_unix_listener(*where) : descriptor{})
    add_listener(std::move(unix_socket), *where);
  return where;
}

void transport::engine::add_listener(descriptor socket, const endpoint& beside) {
  // A function that can be copied has to share what it owns.
  auto shared = std::make_shared<descriptor>(std::move(socket));
  post([this, shared, beside] {
    const std::uint64_t key = next_key();
    const auto place = listeners_.emplace(key, listener{std::move(*shared), beside}).first;
    if (!context_.poll.add(place->second.socket.get(), key, EPOLLIN))
      listeners_.erase(place);
  });
}

link_id transport::engine::connect(const endpoint& where) {
  using found_addresses = detail::name_resolver::addresses;
  const link_id link{next_key()};
  insert(link.value, std::make_shared<detail::connection>(link, context_, to_string(where)));
  const auto begin = [this, link](const found_addresses& found) {
    post_to(link, [found](detail::connection& made, auto now) { made.begin_connect(found, now); });
  };
  if (auto known = detail::numeric_address(where)) {
    begin(*std::move(known));
  } else {
    post_to(link, [](auto&, auto) {}); // Makes tidy() watch the deadline.
    try {
      names_.ask(where, begin);
    } catch (const std::system_error&) {
      begin(failure{errc::peer_lost, "a name cannot be looked up: no threads left"});
    }
  }
  return link;
}

std::size_t transport::engine::send(link_id link, const message& what) {
  const connection_ptr found = find(link.value);
  if (found == nullptr)
    return 0;
  wire::frame frame = wire::encode(what);
  const std::size_t head_bytes = frame.head.size() - wire::prefix_bytes;
  const std::size_t body_bytes = frame.size_bytes() - frame.head.size();
  if (head_bytes > wire::head_bytes_max || body_bytes > wire::body_bytes_max) {
    post_to(link, [bytes = head_bytes + body_bytes](detail::connection& lost, auto) {
      lost.drop({errc::malformed, "a message is too long: " + std::to_string(bytes) + " bytes"});
    });
    return 0;
  }
  const std::size_t frame_bytes = frame.size_bytes();
  const traffic_class traffic = traffic_class_of(what);
  if (on_own_thread()) {
    if (found->out().cork(traffic, std::move(frame)))
      corked_.push_back(found);
    return frame_bytes;
  }
  const auto state = found->out().send(traffic, std::move(frame));
  if (state == detail::outbox::state::overfull || state == detail::outbox::state::broken)
    post_to(link, [](detail::connection& lost, auto now) { lost.check_outbox(now); });
  return frame_bytes;
}

void transport::engine::close(link_id link) {
  const connection_ptr found = find(link.value);
  if (found == nullptr)
    return;
  found->out().close();
  found->mute();
  post_to(link, [](detail::connection& closing, auto now) { closing.begin_close(now); });
}

transport::engine::connection_ptr transport::engine::find(std::uint64_t key) const {
  const std::scoped_lock lock{links_mutex_};
  const auto found = links_.find(key);
  return found == links_.end() ? nullptr : found->second;
}

void transport::engine::insert(std::uint64_t key, connection_ptr made) {
  const std::scoped_lock lock{links_mutex_};
  links_.emplace(key, std::move(made));
}

void transport::engine::post(std::function<void()> what) {
  {
    const std::scoped_lock lock{posted_mutex_};
    posted_.push_back(std::move(what));
  }
  context_.poll.wake();
}

void transport::engine::post_to(link_id link,
                                std::function<void(detail::connection&, clock::time_point)> what) {
  post([this, link, what = std::move(what)] {
    if (const connection_ptr found = find(link.value)) {
      what(*found, clock::now());
      tidy(link.value, *found);
    }
  });
}

// -- the transport's thread -------------------------------------------------------------------

void transport::engine::run() {
  own_thread_ = std::this_thread::get_id();
  std::array<epoll_event, 64> ready;
  while (!stopping_) {
    const std::size_t count = context_.poll.wait(ready, patience());
    for (const std::uint64_t key : std::exchange(unread_, {}))
      dispatch(key, EPOLLIN);
    for (std::size_t i = 0; i < count && !stopping_; ++i)
      dispatch(ready[i].data.u64, ready[i].events);
    run_posted();
    if (clock::now() >= next_check_)
      check_times();
    end_round();
  }
  listeners_.clear();
  for (const connection_ptr& link : all_links())
    link->drop({errc::peer_lost, "this process closes all links"});
  context_.events.settle();
}

void transport::engine::end_round() {
  context_.events.settle();
  for (const connection_ptr& link : std::exchange(corked_, {}))
    if (link->uncork()) // In the next round, because settle() must follow callbacks.
      post_to(link->id(), [](detail::connection& each, auto now) { each.check_outbox(now); });
}

transport::engine::clock::duration transport::engine::patience() const {
  if (!unread_.empty())
    return clock::duration::zero();
  return next_check_ == clock::time_point::max() ? std::chrono::hours{1}
                                                 : next_check_ - clock::now();
}

void transport::engine::run_posted() {
  std::vector<std::function<void()>> posted;
  {
    const std::scoped_lock lock{posted_mutex_};
    posted.swap(posted_);
  }
  for (const auto& each : posted)
    each();
}

void transport::engine::dispatch(std::uint64_t key, std::uint32_t events) {
  if (const connection_ptr link = find(key)) {
    link->ready(events, clock::now());
    if (link->unread())
      unread_.push_back(key);
    tidy(key, *link);
  } else if (const auto found = listeners_.find(key); found != listeners_.end()) {
    accept_on(key, found->second);
  }
}

void transport::engine::accept_on(std::uint64_t key, listener& from) {
  for (int i = 0; i < accepts_max; ++i) {
    detail::socket_address peer;
    peer.size_bytes = sizeof peer.storage;
    descriptor made{::accept4(from.socket.get(), reinterpret_cast<sockaddr*>(&peer.storage),
                              &peer.size_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    const int problem = made ? 0 : errno;
    if (made) {
      tell_lack("");
      on_accept(detail::accept_stream(std::move(made), peer, context_.options, from.beside));
      continue;
    }
    // These errors last until something is freed; an immediate retry would only burn time.
    if (problem == EMFILE || problem == ENFILE || problem == ENOBUFS || problem == ENOMEM) {
      pause(key, from);
      tell_lack(std::string{"cannot accept a connection: "} + std::strerror(problem));
    } else if (problem == EAGAIN || problem == EWOULDBLOCK) {
      tell_lack(""); // accept4() takes a descriptor before it looks for a connection.
    }
    if (problem != ECONNABORTED && problem != EINTR)
      return;
  }
}

void transport::engine::on_accept(detail::accepted_stream accepted) {
  const auto& name = accepted.peer;
  if (!accepted.made)
    return context_.events.rejected(name, {errc::not_ready, name + " has no business here"});
  if (accepted_ >= context_.options.links_max)
    return context_.events.rejected(
      name, {errc::not_ready,
             name + " finds no room: " + std::to_string(accepted_) + " links are the limit"});
  const link_id link{next_key()};
  const auto made = std::make_shared<detail::connection>(link, context_, name);
  insert(link.value, made);
  ++accepted_;
  made->begin_accepted(std::move(accepted.made), clock::now());
  tidy(link.value, *made);
}

void transport::engine::pause(std::uint64_t key, listener& which) {
  context_.poll.change(which.socket.get(), key, 0);
  which.paused_until = clock::now() + accept_pause;
  next_check_ = std::min(next_check_, which.paused_until);
}

void transport::engine::tell_lack(const std::string& why) {
  if (std::exchange(lack_, why) != why && context_.events.hampered)
    context_.events.hampered(why);
}

void transport::engine::tidy(std::uint64_t key, detail::connection& link) {
  if (!link.finished()) {
    next_check_ = std::min(next_check_, link.next_check());
    return;
  }
  if (link.accepted())
    --accepted_;
  const std::scoped_lock lock{links_mutex_};
  links_.erase(key);
}

void transport::engine::check_times() {
  const auto now = clock::now();
  next_check_ = clock::time_point::max();
  for (auto& [key, each] : listeners_) {
    if (each.paused_until <= now) {
      each.paused_until = clock::time_point::max();
      context_.poll.change(each.socket.get(), key, EPOLLIN);
    }
    next_check_ = std::min(next_check_, each.paused_until);
  }
  for (const connection_ptr& link : all_links()) {
    link->check_time(now);
    tidy(link->id().value, *link);
  }
  next_check_ = std::max(next_check_, now + check_interval_min_);
}

std::vector<transport::engine::connection_ptr> transport::engine::all_links() const {
  const std::scoped_lock lock{links_mutex_};
  std::vector<connection_ptr> all;
  all.reserve(links_.size());
  for (const auto& [key, link] : links_)
    all.push_back(link);
  return all;
}

} // namespace troupe
