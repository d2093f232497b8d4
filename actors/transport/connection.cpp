#include "actors/transport/connection.hpp"

#include "actors/transport/frames/arena_reader.hpp"
#include "actors/transport/make_stream.hpp"

#include <algorithm>
#include <array>

namespace troupe::detail {

namespace {

/// Bytes read from one link before other links have their turn.
constexpr std::size_t read_budget_bytes = std::size_t{8} << 20;
/// Time after close() or a refusal to send queued frames and let the peer read them.
constexpr std::chrono::seconds farewell_time{1};

std::string ms_text(std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; }

} // namespace

connection::connection(link_id id, link_context& context, std::string peer_address)
    : id_(id), context_(context), peer_(std::move(peer_address)),
      out_(context.poll, id.value, context.options.queue_bytes_max),
      reader_(context.pool), connect_failure_{errc::peer_lost, "cannot be reached"},
      deadline_(clock::now() + context.options.handshake_timeout), last_read_(clock::now()) {}

connection::~connection() { out_.detach(); }

// -- connecting -------------------------------------------------------------------------------

void connection::begin_connect(const result<std::vector<socket_address>>& addresses,
                               clock::time_point now) {
  if (finished())
    return;
  if (!addresses)
    return drop({errc::peer_lost, addresses.error().text});
  const auto all = addresses_to_try(*addresses, context_.options);
  addresses_.assign(all.rbegin(), all.rend());
  try_next_address(now);
}

void connection::try_next_address(clock::time_point now) {
  while (!addresses_.empty()) {
    const socket_address next = addresses_.back();
    addresses_.pop_back();
    int error = 0;
    auto made = connect_stream(next, context_.options, error);
    if (error != 0)
      connect_failure_.text = "cannot be reached: " + system_text(error);
    if (made && watch(std::move(made)))
      return establish(now);
  }
  drop(because(connect_failure_.code, connect_failure_.text));
}

bool connection::watch(std::unique_ptr<stream> made) {
  if (!context_.poll.add(made->poll_descriptor(), id_.value, made->interest(false))) {
    connect_failure_.text = "cannot be served: out of memory";
    return false;
  }
  stream_ = std::move(made);
  return true;
}

void connection::begin_accepted(std::unique_ptr<stream> accepted, clock::time_point now) {
  accepted_ = true;
  deadline_ = now + context_.options.handshake_timeout;
  if (!watch(std::move(accepted)))
    return drop(because(connect_failure_.code, connect_failure_.text));
  establish(now);
}

void connection::establish(clock::time_point now) {
  const auto done = stream_->establish();
  if (done) {
    context_.poll.change(stream_->poll_descriptor(), id_.value, stream_->interest(false));
    if (*done)
      begin_greeting(now);
    return;
  }
  connect_failure_ = done.error();
  if (reaction_to(connect_failure_.code) == reaction::stop)
    return part(now); // Another address of the same peer would fail too.
  context_.poll.remove(stream_->poll_descriptor());
  stream_->reset();
  try_next_address(now);
}

/// Ends a link whose peer the stream refuses; the stream tells the peer why.
void connection::part(clock::time_point now) {
  report_end(because(connect_failure_.code, connect_failure_.text));
  deadline_ = now + farewell_time;
  phase_ = phase::lingering;
  stream_->finish_writing();
  context_.poll.change(stream_->poll_descriptor(), id_.value, stream_->interest(false));
}

void connection::begin_greeting(clock::time_point now) {
  addresses_.clear();
  last_read_ = now;
  phase_ = phase::greeting;
  out_.attach(*stream_);
  if (accepted_)
    return;
  bring_arena();
  out_.begin(context_.preamble_of_self());
  out_.send_first(wire::encode(context_.hello_of_self()));
}

/// Makes this side's arena; the first bytes sent carry its descriptor.
void connection::bring_arena() {
  if (!context_.options.arena || !stream_->passes_descriptors())
    return;
  arena_ = arena_writer::make(context_.options.arena_bytes);
  if (arena_)
    stream_->pass(arena_->take_descriptor());
}

// -- reading ----------------------------------------------------------------------------------

void connection::ready(std::uint32_t events, clock::time_point now) {
  if (finished())
    return;
  if (phase_ == phase::establishing)
    return establish(now);
  const bool writes_to_read = (stream_->interest(false) & EPOLLOUT) != 0;
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 || writes_to_read)
    read(now);
  if ((events & EPOLLOUT) != 0)
    out_.flush();
  check_outbox(now);
}

bool connection::unread() const { return stream_ != nullptr && !finished() && stream_->buffered(); }

void connection::read(clock::time_point now) {
  std::size_t total = 0;
  while (!finished() && total < read_budget_bytes) {
    const auto direct = discards() ? std::span<std::byte>{} : reader_.direct();
    const auto staging = std::span{context_.staging}.first(
      direct.empty() ? context_.staging.size() : reader_.behind_direct(context_.staging.size()));
    std::array places{iovec{direct.data(), direct.size()}, iovec{staging.data(), staging.size()}};
    const transfer got = stream_->read(places);
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
      return; // No more bytes are there; the poller reports new ones.
  }
}

void connection::take(std::size_t direct_bytes, std::span<const std::byte> staged,
                      clock::time_point now) {
  if (direct_bytes != 0)
    reader_.advance(direct_bytes);
  for (;;) {
    if (reader_.complete())
      deliver(now);
    if (reader_.take_arena_mapped() && arena_) {
      out_.use(std::move(arena_));
      next_trim_ = now + context_.options.silence_timeout;
    }
    if (finished() || discards() || staged.empty())
      return;
    const bool begins = !introduction_.has_preamble();
    const auto taken = begins ? introduction_.take(staged) : reader_.take(staged);
    if (!taken)
      return garbage(taken.error(), now);
    staged = staged.subspan(*taken);
    if (begins && introduction_.has_preamble())
      if (const auto why = introduction_.rejection_for(
            context_.preamble_of_self(), accepted_ && !context_.options.admit_without_secret))
        refuse(*why, now);
  }
}

void connection::deliver(clock::time_point now) {
  auto decoded = reader_.decode();
  if (phase_ == phase::greeting)
    return take_first(decoded, now);
  if (!decoded)
    return garbage(decoded.error(), now);
  if (const auto* refused = std::get_if<rejection>(&*decoded))
    return drop({refused->why.code, peer_ + " ended the link: " + one_line(refused->why.text)});
  if (std::holds_alternative<hello>(*decoded))
    return garbage({errc::malformed, "a second hello"}, now);
  context_.events.received(id_, std::move(*decoded));
}

void connection::take_first(const result<message>& first, clock::time_point now) {
  if (!first)
    return garbage(first.error(), now);
  if (const auto* refused = std::get_if<rejection>(&*first))
    return drop(
      {refused->why.code, peer_ + " refused the link: it " + one_line(refused->why.text)});
  const auto* peer = std::get_if<hello>(&*first);
  if (peer == nullptr)
    return garbage({errc::malformed, "no hello"}, now);
  if (const auto why = introduction::rejection_for(context_.self, *peer, stream_->proved_roles()))
    return refuse(*why, now);
  open(*peer);
}

void connection::open(const hello& peer) {
  phase_ = phase::open;
  opened_ = true;
  if (accepted_) {
    bring_arena();
    out_.begin(answer_to(context_.preamble_of_self(), introduction_.peer()));
    out_.send_first(wire::encode(context_.hello_of_self()));
  }
  const descriptor passed = stream_->take_passed();
  const auto arena = context_.options.arena && passed ? arena_reader::map(passed) : nullptr;
  reader_.admit(arena);
  if (arena)
    out_.signal(true);
  hello known = peer;
  known.secret = introduction_.peer().secret;
  context_.events.opened(id_, known, stream_->local());
  out_.open();
}

void connection::garbage(const failure& why, clock::time_point now) {
  if (phase_ == phase::greeting && introduction_.speaks_tls()) {
    const failure here{errc::malformed, "speaks TLS: start both sides with --tls DIR"};
    // The answer is plain text, so that the peer sees the cause.
    return accepted_ ? refuse({here, {errc::malformed, "does not speak TLS"}}, now)
                     : drop(because(here.code, here.text));
  }
  if (phase_ == phase::greeting)
    return drop(because(errc::malformed, "does not speak this protocol"));
  drop(because(errc::malformed, "sent bytes that are no message: " + why.text));
}

// -- ending -----------------------------------------------------------------------------------

void connection::refuse(const peer_rejection& why, clock::time_point now) {
  out_.close();
  if (accepted_)
    out_.begin({context_.self.version, 0});
  out_.send_first(wire::encode(rejection{why.there}));
  report_end(because(why.here.code, why.here.text));
  deadline_ = now + farewell_time;
  phase_ = phase::flushing;
}

void connection::begin_close(clock::time_point now) {
  if (phase_ == phase::establishing || phase_ == phase::greeting)
    return drop({errc::peer_lost, "the link to " + peer_ + " was closed here"});
  if (phase_ != phase::open)
    return;
  closed_because_ = failure{errc::peer_lost, "the link to " + peer_ + " was closed here"};
  deadline_ = now + farewell_time;
  phase_ = phase::flushing;
  check_outbox(now);
}

void connection::check_outbox(clock::time_point now) {
  if (finished() || phase_ == phase::establishing)
    return;
  switch (out_.refresh()) {
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
    read(now); // Reads the peer's last messages, perhaps a refusal.
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
  const failure why = error == 0 ? failure{errc::peer_lost, what} : stream_->explain(error);
  drop(because(why.code, why.text));
}

void connection::linger() {
  phase_ = phase::lingering;
  stream_->finish_writing();
  if (closed_because_)
    report_end(*closed_because_);
}

void connection::drop(failure why) {
  if (finished())
    return;
  phase_ = phase::finished;
  out_.detach();
  if (stream_) {
    context_.poll.remove(stream_->poll_descriptor());
    stream_->reset();
  }
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
  case phase::establishing:
    return drop(
      because(errc::peer_lost, "cannot be reached within " + ms_text(options.handshake_timeout)));
  case phase::greeting:
    return drop(
      because(errc::peer_lost, "sent no hello within " + ms_text(options.handshake_timeout)));
  case phase::open:
    // On a busy machine, bytes may have arrived long ago that this thread has not read yet.
    if (now >= last_read_ + options.silence_timeout && !stream_->readable())
      return drop(because(errc::peer_lost, "was silent for " + ms_text(options.silence_timeout)));
    if (now >= keep_alive_time())
      out_.signal(false);
    if (now >= next_trim_) {
      out_.trim_arena();
      next_trim_ = now + options.silence_timeout;
    }
    return check_outbox(now);
  case phase::flushing:
  case phase::lingering:
  case phase::finished: return drop(because(errc::peer_lost, "did not read to the end"));
  }
}

connection::clock::time_point connection::next_check() const {
  if (phase_ != phase::open)
    return deadline_;
  return std::min({last_read_ + context_.options.silence_timeout, keep_alive_time(), next_trim_});
}

connection::clock::time_point connection::keep_alive_time() const {
  const auto since = out_.idle_since();
  return since == clock::time_point::max() ? since : since + context_.options.silence_timeout / 4;
}

} // namespace troupe::detail
