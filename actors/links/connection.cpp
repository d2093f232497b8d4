#include "actors/links/connection.hpp"

#include "actors/links/handshake.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace troupe::detail {

namespace {

/// One link is read so far before others have their turn.
constexpr std::size_t read_budget_bytes = std::size_t{8} << 20;
/// After close() or a refusal: for what was queued to leave and the peer to read it.
constexpr std::chrono::seconds farewell_time{1};

std::string ms_text(std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; }

} // namespace

connection::connection(link_id id, link_context& context, std::string peer_address)
    : id_(id), context_(context), peer_(std::move(peer_address)),
      out_(context.poll, id.value, context.options.queue_bytes_max), reader_(context.pool),
      deadline_(clock::now() + context.options.handshake_timeout), last_read_(clock::now()) {}

connection::~connection() { out_.detach(); }

// -- connecting -------------------------------------------------------------------------------

void connection::begin_connect(const result<std::vector<socket_address>>& addresses,
                               clock::time_point now) {
  if (finished())
    return;
  if (!addresses)
    return drop({errc::peer_lost, addresses.error().text});
  addresses_.assign(addresses->rbegin(), addresses->rend());
  deadline_ = now + context_.options.handshake_timeout;
  try_next_address();
}

void connection::try_next_address() {
  while (!addresses_.empty()) {
    socket_ = stream_socket::connect(addresses_.back(), connect_error_);
    addresses_.pop_back();
    if (socket_ && watch(EPOLLOUT))
      return;
  }
  drop(because(errc::peer_lost, "cannot be reached: " + system_text(connect_error_)));
}

bool connection::watch(std::uint32_t interest) {
  if (context_.poll.add(socket_.poll_descriptor(), id_.value, interest))
    return true;
  connect_error_ = ENOMEM;
  socket_.reset();
  return false;
}

void connection::finish_connect(clock::time_point now) {
  connect_error_ = socket_.connect_error();
  if (connect_error_ != 0) {
    context_.poll.remove(socket_.poll_descriptor());
    socket_.reset();
    return try_next_address();
  }
  context_.poll.change(socket_.poll_descriptor(), id_.value, EPOLLIN);
  addresses_.clear();
  begin_greeting(now);
  out_.greet(wire::encode(context_.self));
}

void connection::begin_accepted(descriptor socket, clock::time_point now) {
  accepted_ = true;
  deadline_ = now + context_.options.handshake_timeout;
  socket_ = stream_socket{std::move(socket)};
  if (!watch(EPOLLIN))
    return drop(because(errc::peer_lost, "cannot be served: out of memory"));
  begin_greeting(now);
}

void connection::begin_greeting(clock::time_point now) {
  socket_.tune({context_.options.silence_timeout, context_.options.congestion_control});
  const auto local = local_endpoint(socket_.poll_descriptor());
  local_ = local ? to_string(*local) : std::string{};
  last_read_ = now;
  phase_ = phase::greeting;
  out_.attach(socket_);
}

// -- reading ----------------------------------------------------------------------------------

void connection::ready(std::uint32_t events, clock::time_point now) {
  if (finished())
    return;
  if (phase_ == phase::connecting)
    return finish_connect(now);
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0)
    read(now);
  if ((events & EPOLLOUT) != 0)
    out_.flush();
  settle(now);
}

void connection::read(clock::time_point now) {
  std::size_t total = 0;
  while (!finished() && total < read_budget_bytes) {
    const auto direct = discards() ? std::span<std::byte>{} : reader_.direct();
    const std::span staging{context_.staging};
    std::array places{iovec{direct.data(), direct.size()}, iovec{staging.data(), staging.size()}};
    const transfer got = socket_.read(places);
    if (got.how == transfer::status::would_block)
      return;
    if (got.how != transfer::status::moved)
      return end_of_stream(got.error);
    last_read_ = now;
    total += got.bytes;
    const std::size_t in_place = std::min(got.bytes, direct.size());
    if (!discards())
      take(in_place, staging.first(got.bytes - in_place), now);
    if (got.bytes < direct.size() + staging.size())
      return; // That was all; if not, the poller says so.
  }
}

void connection::take(std::size_t direct_bytes, std::span<const std::byte> staged,
                      clock::time_point now) {
  if (direct_bytes != 0)
    reader_.advance(direct_bytes);
  for (;;) {
    if (reader_.complete())
      deliver(now);
    if (finished() || discards() || staged.empty())
      return;
    const auto taken = reader_.take(staged);
    if (!taken)
      return garbage(taken.error());
    staged = staged.subspan(*taken);
  }
}

void connection::deliver(clock::time_point now) {
  auto decoded = reader_.decode();
  if (phase_ == phase::greeting)
    return greet(decoded, now);
  if (!decoded)
    return garbage(decoded.error());
  if (const auto* refused = std::get_if<refusal>(&*decoded))
    return drop({refused->why.code, peer_ + " ended the link: " + one_line(refused->why.text)});
  if (std::holds_alternative<hello>(*decoded))
    return garbage({errc::malformed, "a second hello"});
  context_.events.received(id_, std::move(*decoded));
}

void connection::greet(const result<message>& first, clock::time_point now) {
  if (!first && first.error().code == errc::version_mismatch) {
    const std::string here = std::to_string(context_.self.version);
    return refuse({errc::version_mismatch, "is refused: " + first.error().text},
                  {errc::version_mismatch, "speaks protocol version " + here}, now);
  }
  if (!first)
    return garbage(first.error());
  if (const auto* refused = std::get_if<refusal>(&*first))
    return drop(
      {refused->why.code, peer_ + " refused the link: it " + one_line(refused->why.text)});
  const auto* peer = std::get_if<hello>(&*first);
  if (peer == nullptr)
    return garbage({errc::malformed, "no hello"});
  if (const auto here = objection(context_.self, *peer))
    return refuse(*here, *objection(*peer, context_.self), now);
  const bool without_secret = context_.self.secret != 0 && peer->secret == 0;
  if (accepted_ && without_secret && !context_.options.admit_without_secret)
    return refuse({errc::wrong_job, "belongs to another host, and this job admits none"},
                  {errc::wrong_job, "admits no other hosts: start the job with --listen"}, now);
  phase_ = phase::open;
  opened_ = true;
  if (accepted_)
    out_.greet(wire::encode(answer_to(context_.self, *peer)));
  context_.events.opened(id_, *peer, local_);
  out_.open();
}

void connection::garbage(const failure& why) {
  if (phase_ == phase::greeting)
    return drop(because(errc::malformed, "does not speak this protocol"));
  drop(because(errc::malformed, "sent bytes that are no message: " + why.text));
}

// -- ending -----------------------------------------------------------------------------------

void connection::refuse(const failure& here, const failure& there, clock::time_point now) {
  out_.close();
  out_.greet(wire::encode(refusal{there}));
  report_end(because(here.code, here.text));
  deadline_ = now + farewell_time;
  phase_ = phase::flushing;
}

void connection::begin_close(clock::time_point now) {
  if (phase_ == phase::connecting || phase_ == phase::greeting)
    return drop({errc::peer_lost, "the link to " + peer_ + " was closed here"});
  if (phase_ != phase::open)
    return;
  closed_because_ = failure{errc::peer_lost, "the link to " + peer_ + " was closed here"};
  deadline_ = now + farewell_time;
  phase_ = phase::flushing;
  settle(now);
}

void connection::settle(clock::time_point now) {
  if (finished() || phase_ == phase::connecting)
    return;
  switch (out_.look()) {
  case outbox::state::waiting: return;
  case outbox::state::drained:
    if (phase_ == phase::flushing)
      linger();
    return;
  case outbox::state::overfull:
    return drop(because(errc::peer_lost, "does not read: more than "
                                           + std::to_string(context_.options.queue_bytes_max)
                                           + " bytes wait for it"));
  case outbox::state::broken:
    read(now); // What it said last, perhaps a refusal.
    return end_of_stream(out_.error());
  }
}

bool connection::uncork() {
  switch (out_.flush()) {
  case outbox::state::waiting: return false;
  case outbox::state::drained: return phase_ == phase::flushing;
  case outbox::state::overfull:
  case outbox::state::broken: break;
  }
  return true;
}

void connection::end_of_stream(int error) {
  if (error == 0)
    error = out_.error();
  const char* const what =
    phase_ == phase::greeting ? "closed the connection before its hello" : "closed the connection";
  drop(because(errc::peer_lost, error == 0 ? what : "is lost: " + system_text(error)));
}

void connection::linger() {
  phase_ = phase::lingering;
  socket_.finish_writing();
  if (closed_because_)
    report_end(*closed_because_);
}

void connection::drop(failure why) {
  if (finished())
    return;
  phase_ = phase::finished;
  out_.detach();
  if (socket_)
    context_.poll.remove(socket_.poll_descriptor());
  socket_.reset();
  report_end(closed_because_ ? *closed_because_ : why);
}

void connection::report_end(const failure& why) {
  if (std::exchange(reported_, true))
    return;
  if (accepted_ && !opened_)
    context_.events.rejected(peer_, why);
  else
    context_.events.lost(id_, why);
}

failure connection::because(errc code, const std::string& what) const {
  return {code, peer_ + " " + what};
}

// -- time -------------------------------------------------------------------------------------

void connection::check_time(clock::time_point now) {
  const auto& options = context_.options;
  if (finished() || now < next_check())
    return;
  switch (phase_) {
  case phase::connecting:
    return drop(
      because(errc::peer_lost, "cannot be reached within " + ms_text(options.handshake_timeout)));
  case phase::greeting:
    return drop(
      because(errc::peer_lost, "sent no hello within " + ms_text(options.handshake_timeout)));
  case phase::open:
    // A busy machine may have kept this thread from reading what has arrived long ago.
    if (now >= last_read_ + options.silence_timeout && !socket_.readable())
      return drop(because(errc::peer_lost, "said nothing for " + ms_text(options.silence_timeout)));
    if (now >= keep_alive_time())
      out_.greet({{keep_alive_frame.begin(), keep_alive_frame.end()}, {}});
    return settle(now);
  case phase::flushing:
  case phase::lingering:
  case phase::finished: return drop(because(errc::peer_lost, "did not read to the end"));
  }
}

connection::clock::time_point connection::next_check() const {
  if (phase_ != phase::open)
    return deadline_;
  return std::min(last_read_ + context_.options.silence_timeout, keep_alive_time());
}

connection::clock::time_point connection::keep_alive_time() const {
  const auto since = out_.idle_since();
  return since == clock::time_point::max() ? since : since + context_.options.silence_timeout / 4;
}

} // namespace troupe::detail
