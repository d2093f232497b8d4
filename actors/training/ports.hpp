// Declares the ports of actors and trainers, through which they send and take parcels. The guide
// page is docs/guide/your-own-actor.md, and docs/design/channels.md follows one parcel.
#pragma once

#include "actors/training/head_type.hpp"
#include "actors/training/trainer.hpp"
#include "base/buffer.hpp"
#include "serialization/channel.hpp"

#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Floats of a parcel, f32[size]. Copies share the values, and no code may change them.
class tensor {
public:
  tensor() = default;
  /// Takes the values over, without a copy.
  tensor(std::vector<float> values);
  tensor(float_ptr values, std::uint64_t count) : raw_{std::move(values), count} {}

  std::span<const float> values() const { return {raw_.values.get(), raw_.count}; }
  std::size_t size() const { return raw_.count; }
  const parcel_tensor& raw() const { return raw_; }

private:
  parcel_tensor raw_;
};

/// A message of a channel. Its head is a plain value, whose bytes are sent.
template <class Head>
struct parcel {
  static_assert(detail::check_head<Head>());
  Head head{};
  std::vector<tensor> tensors = {}; ///< At most 256, together at most 1 GiB.
  std::uint32_t from = 0;           ///< Set on arrival: the sender's number among the peers.
};

/// Connects a port with its channel. port_room implements it.
class port_line {
public:
  virtual ~port_line() = default;
  virtual bool send(std::uint32_t to, std::vector<std::byte> head,
                    std::vector<parcel_tensor> tensors) = 0;
  virtual bool ready(std::uint32_t to) const = 0;
  virtual std::uint32_t peers() const = 0;
  virtual bool may_wait() const = 0;
  /// Waits for a parcel of this port, and runs the callbacks of other ports meanwhile.
  virtual std::optional<std::pair<parcel_message, std::uint32_t>>
  next(std::chrono::nanoseconds timeout) = 0;
  /// Asks for values, see pulls. `keys`: one list for each table; empty for dense tables.
  virtual void ask(std::vector<std::vector<std::uint64_t>> keys) = 0;
};

/// The part of a port that does not depend on its type. A port is a member of its owner, so it
/// cannot be copied or moved. It registers itself while the maker of its owner runs.
class port_base {
public:
  enum class kind : std::uint8_t { out, in, pulls };

  port_base(const port_base&) = delete;
  port_base& operator=(const port_base&) = delete;

  kind what() const { return kind_; }
  const std::string& name() const { return name_; }
  /// The type of its heads; empty for `pulls`.
  const std::string& head() const { return head_; }

  /// Called on the owner's thread: the other member `peer` has joined, or is lost. May be null.
  std::function<void(std::uint32_t peer)> joined = {}, lost = {};

  // -- for the shell --
  void connect(port_line* line) { line_ = line; }
  bool is_connected() const { return line_ != nullptr; }
  /// Returns whether deliver() hands parcels to the program; else in::next() does.
  virtual bool takes() const { return true; }
  /// Requires: takes().
  virtual void deliver(parcel_message&& /*what*/, std::uint32_t /*from*/) {}
  virtual void deliver_values(const_tensors /*values*/) {}
  virtual void deliver_writable(std::uint32_t /*to*/) {}

protected:
  /// Throws std::invalid_argument if the name is not of 1 to 10 of the characters [a-z0-9_].
  port_base(kind what, std::string_view name, std::string head);
  virtual ~port_base();
  /// Returns the line. Throws std::logic_error if the port is not joined.
  port_line& line() const;
  /// Returns the line. Throws std::out_of_range for `to` >= peers().
  port_line& line_to(std::uint32_t to) const;
  /// Does what out::send() does.
  bool send_bytes(const void* head, std::size_t size, const std::vector<tensor>& tensors,
                  std::uint32_t to);

private:
  kind kind_;
  std::string name_;
  std::string head_;
  port_line* line_ = nullptr;
};

/// Collects the ports that are made on this thread while it lives. The innermost one gets them.
class port_collector {
public:
  port_collector();
  ~port_collector();
  port_collector(const port_collector&) = delete;
  port_collector& operator=(const port_collector&) = delete;

  /// Returns the ports that still exist, in the order in which they were made. A port must die on
  /// the thread that made it, or after the collector.
  const std::vector<port_base*>& ports() const { return ports_; }

private:
  friend class port_base;
  std::vector<port_base*> ports_;
  port_collector* around_;
};

/// Sends parcels to its peers: the members of the other node to which the shape of the join leads.
/// With join_shape::spread they are all members, by their number; else there is one, number 0. Call
/// it on the owner's thread.
template <class Head>
class out final : public port_base {
  static_assert(detail::check_head<Head>());

public:
  using head_type = Head;
  static constexpr bool sends = true;
  static std::string type() { return head_type_of<Head>(); }

  explicit out(std::string_view name) : port_base(kind::out, name, type()) {}

  /// Sends a parcel to peer `to`. Returns false without credit or session: keep the parcel, drop
  /// it, or send it when `writable` is called. It never blocks. A parcel that was sent is lost if
  /// either end dies before the parcel was taken. Throws std::invalid_argument for tensors beyond
  /// the limits, and std::out_of_range for `to` >= peers().
  [[nodiscard]] bool send(const parcel<Head>& what, std::uint32_t to) {
    return send_bytes(&what.head, sizeof(Head), what.tensors, to);
  }
  /// Returns whether send() would succeed now. False for want of credit begins a wait, which the
  /// report counts. No `writable` follows.
  bool ready(std::uint32_t to) const { return line_to(to).ready(to); }
  /// Returns the number of peers.
  std::uint32_t peers() const { return line().peers(); }

  /// Called on the owner's thread when send() to `to` had returned false, and can succeed again.
  std::function<void(std::uint32_t to)> writable = {};

  void deliver_writable(std::uint32_t to) override {
    if (writable)
      writable(to);
  }
};

/// Takes parcels of its peers, see out.
template <class Head>
class in final : public port_base {
  static_assert(detail::check_head<Head>());

public:
  using head_type = Head;
  static constexpr bool sends = false;
  static std::string type() { return head_type_of<Head>(); }

  explicit in(std::string_view name) : port_base(kind::in, name, type()) {}

  /// Called on the owner's thread with each parcel, in the order of its sender. Its return gives
  /// the sender room for another parcel. Set it before the first parcel: in an actor's start(), or
  /// in a trainer's constructor. It may throw: the job then stops. A call of 10 s is named in a
  /// line.
  std::function<void(parcel<Head>&&)> take = {};

  /// Waits for the next parcel, which is then not passed to `take`. Returns nullopt after
  /// `timeout`, or after 5 s if that is less. Only trainers call it, within gradient() itself.
  /// Callbacks of other ports run meanwhile. A timeout of 0 takes a parcel that is here, and waits
  /// for none. Throws std::logic_error within a callback, and for a longer timeout if may_wait() is
  /// false.
  std::optional<parcel<Head>> next(std::chrono::nanoseconds timeout) {
    auto came = line().next(timeout);
    if (!came)
      return std::nullopt;
    return whole(std::move(came->first), came->second);
  }
  /// Returns whether next() can wait. It cannot in virtual time, in which only `take` gets parcels.
  bool may_wait() const { return line().may_wait(); }
  std::uint32_t peers() const { return line().peers(); }

  bool takes() const override { return static_cast<bool>(take); }
  void deliver(parcel_message&& what, std::uint32_t from) override {
    take(whole(std::move(what), from));
  }

private:
  static parcel<Head> whole(parcel_message&& what, std::uint32_t from) {
    parcel<Head> made;
    made.from = from;
    assert(what.head.size() == sizeof(Head)); // The hub checks it.
    std::memcpy(&made.head, what.head.data(), sizeof(Head));
    for (auto& each : what.tensors)
      made.tensors.emplace_back(std::move(each.values), each.count);
    return made;
  }
};

/// Asks for the newest values of the store, in no clock and without a wait for any worker.
class pulls final : public port_base {
public:
  explicit pulls(std::string_view name) : port_base(kind::pulls, name, {}) {}

  /// Called on the owner's thread with the values, which are valid during the call.
  std::function<void(const_tensors)> take = {};

  /// Asks for the dense tables. An ask before the answer to the last one is dropped.
  void ask() { line().ask({}); }
  /// Asks for the dense tables, and for rows of sparse tables: one list for each table of the job,
  /// with ascending keys.
  void ask(std::vector<std::vector<std::uint64_t>> keys) { line().ask(std::move(keys)); }

  void deliver_values(const_tensors values) override {
    if (take)
      take(values);
  }
};

} // namespace troupe
