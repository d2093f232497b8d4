// The bytes of one link over TCP, encrypted, between two processes that have proved who they are.
#pragma once

#include "actors/links/socket.hpp"
#include "actors/links/tls_context.hpp"
#include "serialization/error.hpp"
#include "serialization/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct bio_st;
struct ssl_st;
struct x509_store_ctx_st;

namespace troupe::detail {

enum class link_side { connector, acceptor };

/// What a stream_socket offers, and the same outcomes. `ended` is the peer's goodbye; an end
/// without it is a failure, for somebody may have cut the line.
///
/// Thread safety: one reader and one writer may work at the same time. They share a lock, which is
/// let go between two records that are read, and between two batches of 64 KiB that are written.
///
/// Invariants:
/// (1) Only establish() and read() take bytes from the socket: a writer never makes disappear what
///     the reader's poller was to tell of.
/// (2) Nothing is encrypted for a peer whose certificate was not accepted.
/// (3) What write() took and the socket did not is in out_, encrypted: nobody has to repeat it, and
///     nothing may come in between.
class tls_stream {
public:
  /// `socket`: connected. `address`: as which number the connector knows its peer; it has to be
  /// among the addresses in the peer's certificate where that has any. Empty: not looked at.
  tls_stream(std::shared_ptr<const tls_context> context, stream_socket socket, link_side side,
             std::string address = {});
  ~tls_stream();
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  /// Goes on with the handshake. True: done, and read() may bring something already. False: call
  /// again when the poller reports an event of interest(false). Errors: why().
  result<bool> establish();
  /// Also sends what is unsent(), first.
  transfer write(std::span<iovec> parts);
  transfer read(std::span<iovec> places);
  /// Whether bytes wait to be read.
  bool readable() const;
  /// Whether some of them have left the socket, so that no poller tells of them.
  bool buffered() const;
  /// EPOLLIN, EPOLLOUT. `queued`: something waits to be written.
  std::uint32_t interest(bool queued) const;
  /// Says goodbye. After a failure: the reason for it leaves, and what still arrives is read and
  /// thrown away, because closing at once would destroy what is under way.
  void finish_writing();
  void reset();
  int poll_descriptor() const { return socket_.poll_descriptor(); }
  void tune(const socket_tuning& tuning) const { socket_.tune(tuning); }

  /// Of the peer's certificate; empty before the handshake was done.
  std::vector<role> peer_roles() const;
  /// Why a transfer failed; the text lacks its subject: "showed no certificate". Errors: untrusted
  /// (a certificate), malformed (no TLS), peer_lost (all that may be better next time).
  failure why() const;

  // -- for tls_context --
  static bio_method_st* make_method();
  static int verify(int preverified, x509_store_ctx_st* chain);

private:
  enum class phase { handshake, open, ended, failed };

  // All of these with the lock held.
  transfer read_some(iovec place);
  std::size_t write_some(class record_source& from, bool& room);
  void encrypt(std::span<const std::byte> bytes);
  bool flush();
  void say_goodbye();
  transfer discard();
  transfer failed() const;
  void fail(failure why);
  void settle(int outcome);
  bool check_peer(x509_store_ctx_st& chain);

  static int take_from_socket(bio_st* bio, char* place, int size);
  static int give_to_socket(bio_st* bio, const char* bytes, int size);
  static long control(bio_st* bio, int command, long number, void* pointer);

  const std::shared_ptr<const tls_context> context_;
  const link_side side_;
  const std::string address_;
  stream_socket socket_;

  mutable std::mutex mutex_;
  ssl_st* ssl_;
  phase phase_ = phase::handshake;
  bool reading_ = false; ///< Invariant (1).
  bool buffered_ = false;
  bool closing_ = false; ///< finish_writing() was called ...
  bool goodbye_ = false; ///< ... and close_notify is in out_, or has left.
  int read_error_ = 0;   ///< Of the socket.
  int write_error_ = 0;  ///< Of the socket; what the peer said before can still be read.
  std::vector<std::byte> out_;
  std::size_t sent_ = 0; ///< Bytes of out_ that the socket has taken.
  std::vector<role> roles_;
  std::string verdict_; ///< What was wrong with the peer's certificate.
  std::optional<failure> failure_;
};

} // namespace troupe::detail
