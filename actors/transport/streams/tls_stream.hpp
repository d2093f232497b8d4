// Encrypts the bytes of one link over TCP, between two processes that have proved their identity.
#pragma once

#include "actors/transport/streams/stream.hpp"
#include "actors/transport/streams/tls_context.hpp"
#include "base/error.hpp"
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

class tls_record_splitter;

enum class link_side { connector, acceptor };

/// `ended` is the peer's goodbye. An end without it is a failure, because an attacker may have cut
/// the line.
///
/// Thread safety: reader and writer share a lock. It is released between two records that are read,
/// and between two batches of 64 KiB that are written.
///
/// Invariants:
/// (1) Only establish() and read() take bytes from below. A writer never consumes bytes that the
///     reader's poller should report.
/// (2) No bytes are encrypted for a peer whose certificate was not accepted.
/// (3) Bytes that write() took and the socket did not are in out_, encrypted. They need no retry,
///     and no other bytes may come in between.
/// (4) Each direction has its keys. Its writer changes a key before it has used it for more than
///     key_records_max records. The stream of records carries the data that its reader needs for
///     that.
class tls_stream : public stream {
public:
  /// With AES-GCM, TLS 1.3 is proved safe for 2^24.5 records under one key. This is a fifth of
  /// that: 64 GiB in full records.
  static constexpr std::uint64_t key_records_max = std::uint64_t{1} << 22;

  /// `address`: the number by which the connector knows its peer. It must be among the addresses in
  /// the peer's certificate, if that has any. Empty: not checked. `records_per_key`: fewer only in
  /// tests.
  tls_stream(std::shared_ptr<const tls_context> context, std::unique_ptr<stream> below,
             link_side side, std::string address = {},
             std::uint64_t records_per_key = key_records_max);
  ~tls_stream() override;
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  /// Errors: untrusted (a certificate), malformed (no TLS), peer_lost (a retry may succeed).
  result<bool> establish() override;
  transfer write(std::span<iovec> parts) override;
  transfer read(std::span<iovec> places) override;
  bool buffered() const override;
  bool readable() const override;
  std::uint32_t interest(bool queued) const override;
  /// Returns errors as establish() does: a peer may refuse our certificate after this side is
  /// established.
  failure explain(int error) const override;
  std::optional<std::vector<role>> proved_roles() const override;
  void finish_writing() override;
  void reset() override;
  int poll_descriptor() const override { return below_->poll_descriptor(); }
  std::string local() const override { return below_->local(); }

  // -- for tls_context --
  static bio_method_st* make_method();
  static int verify(int preverified, x509_store_ctx_st* chain);

private:
  enum class phase { connecting, handshake, open, ended, failed };

  // These members require the lock.
  void shake_hands();
  transfer read_some(iovec place);
  std::size_t write_some(tls_record_splitter& from, bool& room);
  void encrypt(std::span<const std::byte> bytes);
  bool change_key();
  bool flush();
  void say_goodbye();
  transfer discard();
  transfer failed() const;
  void fail(failure why);
  void interpret(int outcome);
  bool check_peer(x509_store_ctx_st& chain);

  static int take_from_socket(bio_st* bio, char* place, int size);
  static int give_to_socket(bio_st* bio, const char* bytes, int size);
  static long control(bio_st* bio, int command, long number, void* pointer);

  const std::shared_ptr<const tls_context> context_;
  const link_side side_;
  const std::string address_;
  const std::uint64_t records_per_key_;
  const std::unique_ptr<stream> below_;

  mutable std::mutex mutex_;
  ssl_st* ssl_;
  phase phase_ = phase::connecting;
  bool reading_ = false; ///< Invariant (1).
  bool buffered_ = false;
  bool closing_ = false; ///< finish_writing() was called.
  bool goodbye_ = false; ///< close_notify is in out_, or has left.
  int read_error_ = 0;   ///< The socket's errno.
  int write_error_ = 0;  ///< The socket's errno; bytes that the peer sent before can be read.
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;      ///< Bytes of out_ that the socket has taken.
  std::uint64_t records_ = 0; ///< Written under the current key, without alerts and the like.
  std::vector<role> roles_;
  std::string verdict_; ///< The fault of the peer's certificate.
  std::optional<failure> failure_;
};

} // namespace troupe::detail
