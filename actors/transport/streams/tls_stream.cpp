#include "actors/transport/streams/tls_stream.hpp"

#include "actors/transport/streams/openssl.hpp"
#include "actors/transport/streams/tls_failure.hpp"
#include "actors/transport/streams/tls_record_splitter.hpp"

#include <openssl/err.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

namespace troupe::detail {

namespace {

/// Bytes for one system call: a few records, so that its cost is small beside that of encryption,
/// and all bytes stay in a fast cache.
constexpr std::size_t batch_bytes = std::size_t{64} << 10;

/// A record of TLS in plain text: fatal, protocol_version.
constexpr std::array no_tls_alert{std::byte{21}, std::byte{3}, std::byte{3}, std::byte{0},
                                  std::byte{2},  std::byte{2}, std::byte{70}};

} // namespace

tls_stream::tls_stream(std::shared_ptr<const tls_context> context, std::unique_ptr<stream> below,
                       link_side side, std::string address, std::uint64_t records_per_key)
    : context_(std::move(context)), side_(side), address_(std::move(address)),
      records_per_key_(records_per_key), below_(std::move(below)),
      ssl_(SSL_new(context_->context_)) {
  BIO* const bio = BIO_new(context_->method_);
  if (ssl_ == nullptr || bio == nullptr) {
    SSL_free(ssl_);
    BIO_free(bio);
    throw std::bad_alloc{};
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio); // ssl_ owns it now.
  SSL_set_app_data(ssl_, this);
  if (side_ == link_side::connector)
    SSL_set_connect_state(ssl_);
  else
    SSL_set_accept_state(ssl_);
}

tls_stream::~tls_stream() { SSL_free(ssl_); }

// -- any thread -------------------------------------------------------------------------------

result<bool> tls_stream::establish() {
  const std::scoped_lock lock{mutex_};
  if (phase_ == phase::connecting) {
    if (auto connected = below_->establish(); !connected || !*connected)
      return connected;
    phase_ = phase::handshake;
  }
  if (phase_ == phase::handshake)
    shake_hands();
  if (failure_)
    return *failure_;
  return phase_ != phase::handshake;
}

transfer tls_stream::read(std::span<iovec> places) {
  std::size_t total = 0;
  for (const iovec& place : places) {
    for (std::size_t filled = 0; filled < place.iov_len;) {
      const std::scoped_lock lock{mutex_};
      const transfer got =
        read_some({static_cast<std::byte*>(place.iov_base) + filled, place.iov_len - filled});
      if (got.how != transfer::status::moved)
        return total == 0 ? got : transfer{transfer::status::moved, total, 0};
      filled += got.bytes;
      total += got.bytes;
    }
  }
  return {transfer::status::moved, total, 0};
}

transfer tls_stream::write(std::span<iovec> parts) {
  tls_record_splitter from{parts};
  const bool nothing_new = from.done();
  std::size_t taken = 0;
  bool room = true;
  do {
    const std::scoped_lock lock{mutex_};
    taken += write_some(from, room);
    if (failure_ || write_error_ != 0)
      return failed();
  } while (room && !from.done());
  if (taken == 0 && !(nothing_new && room))
    return {transfer::status::would_block, 0, 0};
  return {transfer::status::moved, taken, 0};
}

bool tls_stream::readable() const {
  const std::scoped_lock lock{mutex_};
  return buffered_ || below_->readable();
}

bool tls_stream::buffered() const {
  const std::scoped_lock lock{mutex_};
  return buffered_;
}

std::uint32_t tls_stream::interest(bool queued) const {
  const std::scoped_lock lock{mutex_};
  if (phase_ == phase::connecting)
    return below_->interest(false);
  const bool unsent = sent_ < out_.size() && write_error_ == 0;
  return unsent || (queued && phase_ != phase::handshake) ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

void tls_stream::finish_writing() {
  const std::scoped_lock lock{mutex_};
  closing_ = true;
  say_goodbye();
}

void tls_stream::reset() {
  const std::scoped_lock lock{mutex_};
  below_->reset();
}

std::optional<std::vector<role>> tls_stream::proved_roles() const {
  const std::scoped_lock lock{mutex_};
  return phase_ == phase::open || phase_ == phase::ended ? roles_ : std::vector<role>{};
}

failure tls_stream::explain(int error) const {
  const std::scoped_lock lock{mutex_};
  return failure_ ? *failure_ : stream::explain(error);
}

// -- with the lock held -----------------------------------------------------------------------

void tls_stream::shake_hands() {
  ERR_clear_error();
  reading_ = true;
  const int outcome = SSL_do_handshake(ssl_);
  reading_ = false;
  if (outcome == 1) {
    phase_ = phase::open;
    buffered_ = SSL_has_pending(ssl_) == 1;
    // Only now, because a stranger should not cost that much memory.
    SSL_set_default_read_buffer_len(ssl_, batch_bytes);
  } else {
    interpret(outcome);
  }
  flush();
}

transfer tls_stream::read_some(iovec place) {
  if (failure_)
    return closing_ ? discard() : failed();
  if (phase_ == phase::ended)
    return {transfer::status::ended, 0, 0};
  transfer got{transfer::status::would_block, 0, 0};
  ERR_clear_error();
  reading_ = true;
  const int outcome = SSL_read_ex(ssl_, place.iov_base, place.iov_len, &got.bytes);
  reading_ = false;
  if (outcome == 1)
    got.how = transfer::status::moved;
  else
    interpret(outcome);
  buffered_ = outcome == 1 && SSL_has_pending(ssl_) == 1;
  flush(); // Sends an alert, or the answer to new keys.
  if (failure_)
    return failed();
  if (phase_ == phase::ended)
    got.how = transfer::status::ended;
  return got;
}

/// Encrypts and sends one batch; returns the bytes taken. `room`: whether the socket takes more.
std::size_t tls_stream::write_some(tls_record_splitter& from, bool& room) {
  std::size_t taken = 0;
  room = flush();
  while (room && !failure_ && !from.done() && out_.size() < batch_bytes) {
    const auto record = from.next();
    encrypt(record);
    taken += record.size();
  }
  room = room && flush();
  return taken;
}

void tls_stream::encrypt(std::span<const std::byte> bytes) {
  if (records_ == records_per_key_ && !change_key())
    return;
  std::size_t written = 0;
  ERR_clear_error();
  if (const int outcome = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written); outcome != 1) {
    interpret(outcome);
    if (!failure_) // The bytes must not count as sent.
      fail({errc::peer_lost, "sent half a TLS message"});
  }
  ++records_;
}

/// Changes this side's key. A message in front of the first record under the new key tells the
/// peer. It is in out_ when this returns, so no reader can get between the two halves of a change.
bool tls_stream::change_key() {
  ERR_clear_error();
  int outcome = SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
  if (outcome == 1)
    outcome = SSL_do_handshake(ssl_);
  if (outcome == 1) {
    records_ = 0;
    return true;
  }
  interpret(outcome);
  if (!failure_)
    fail({errc::peer_lost, "is lost: TLS made no new key"});
  return false;
}

/// Writes out_ to the socket; returns whether all of it left.
bool tls_stream::flush() {
  while (sent_ < out_.size() && write_error_ == 0) {
    iovec rest{out_.data() + sent_, out_.size() - sent_};
    const transfer went = below_->write({&rest, 1});
    if (went.how == transfer::status::would_block)
      return false;
    sent_ += went.bytes;
    write_error_ = went.error;
  }
  out_.clear();
  sent_ = 0;
  if (closing_)
    below_->finish_writing();
  return write_error_ == 0;
}

void tls_stream::say_goodbye() {
  const bool open = phase_ == phase::open || phase_ == phase::ended;
  if (open && !goodbye_) {
    ERR_clear_error();
    (void)SSL_shutdown(ssl_);
    ERR_clear_error();
    goodbye_ = true;
  }
  flush();
}

/// Reads and discards bytes that arrive after a failure.
transfer tls_stream::discard() {
  std::array<std::byte, 4096> scratch;
  iovec place{scratch.data(), scratch.size()};
  return below_->read({&place, 1}); // Once: the poller reports any more.
}

transfer tls_stream::failed() const {
  return {transfer::status::failed, 0, failure_ ? EPROTO : write_error_};
}

void tls_stream::fail(failure why) {
  if (!failure_)
    failure_ = std::move(why);
  phase_ = phase::failed;
}

/// Handles an OpenSSL call that did not succeed.
void tls_stream::interpret(int outcome) {
  switch (SSL_get_error(ssl_, outcome)) {
  case SSL_ERROR_WANT_READ:
  case SSL_ERROR_WANT_WRITE: return;
  case SSL_ERROR_ZERO_RETURN: phase_ = phase::ended; return;
  case SSL_ERROR_SYSCALL:
    if (read_error_ != 0)
      return fail({errc::peer_lost, "is lost: " + system_text(read_error_)});
    return fail({errc::peer_lost, phase_ == phase::handshake
                                    ? "closed the connection during the TLS handshake"
                                    : "closed the connection without a goodbye"});
  default: break;
  }
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const auto text = take_openssl_error();
  if (!verdict_.empty())
    return fail({errc::untrusted, "showed a certificate that " + verdict_});
  if (auto alert = failure_of_alert(reason))
    return fail(*std::move(alert));
  if (phase_ == phase::handshake && means_no_tls(reason)) {
    if (side_ == link_side::acceptor && out_.empty()) // OpenSSL sends such a peer no alert.
      out_.assign(no_tls_alert.begin(), no_tls_alert.end());
    return fail(not_tls());
  }
  fail({errc::peer_lost, "is lost: TLS failed: " + text});
}

/// Checks one certificate of the chain. OpenSSL calls it for each, from the authority down to the
/// peer's own.
int tls_stream::verify(int preverified, x509_store_ctx_st* chain) {
  const int index = SSL_get_ex_data_X509_STORE_CTX_idx();
  auto* const ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, index));
  auto& self = *static_cast<tls_stream*>(SSL_get_app_data(ssl));
  if (preverified == 1)
    return self.check_peer(*chain) ? 1 : 0;
  self.verdict_ =
    verdict_text(X509_STORE_CTX_get_error(chain), X509_STORE_CTX_get_current_cert(chain));
  return 0;
}

bool tls_stream::check_peer(x509_store_ctx_st& chain) {
  if (X509_STORE_CTX_get_error_depth(&chain) != 0)
    return true;
  const X509& own = *X509_STORE_CTX_get_current_cert(&chain);
  roles_ = roles_of(own);
  const auto addresses = addresses_of(own);
  const bool elsewhere =
    side_ == link_side::connector && !address_.empty() && !addresses.empty()
    && std::find(addresses.begin(), addresses.end(), address_) == addresses.end();
  if (!elsewhere)
    return true;
  verdict_ = elsewhere_text(addresses, address_);
  X509_STORE_CTX_set_error(&chain, X509_V_ERR_IP_ADDRESS_MISMATCH);
  return false;
}

// -- between TLS and the socket ---------------------------------------------------------------

bio_method_st* tls_stream::make_method() {
  // Has no type number of its own: numbers are few, and only serve to find a BIO in a chain.
  BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "troupe link");
  if (made != nullptr) {
    BIO_meth_set_read(made, take_from_socket);
    BIO_meth_set_write(made, give_to_socket);
    BIO_meth_set_ctrl(made, control);
  }
  return made;
}

int tls_stream::take_from_socket(bio_st* bio, char* place, int size) {
  auto& self = *static_cast<tls_stream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (!self.reading_) {
    BIO_set_retry_read(bio);
    return -1;
  }
  iovec where{place, static_cast<std::size_t>(size)};
  const transfer got = self.below_->read({&where, 1});
  if (got.how == transfer::status::would_block)
    BIO_set_retry_read(bio);
  self.read_error_ = got.error;
  if (got.how == transfer::status::moved)
    return static_cast<int>(got.bytes);
  return got.how == transfer::status::ended ? 0 : -1;
}

int tls_stream::give_to_socket(bio_st* bio, const char* bytes, int size) {
  auto& self = *static_cast<tls_stream*>(BIO_get_data(bio));
  const auto* const first = reinterpret_cast<const std::byte*>(bytes);
  BIO_clear_retry_flags(bio);
  self.out_.insert(self.out_.end(), first, first + size);
  return size;
}

long tls_stream::control(bio_st*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0; // flush() runs later.
}

} // namespace troupe::detail
