// Keys that a link has brought before are named by a number instead. The sender of requests keeps a
// book of the lists that it sent, their receiver a shelf of them; both are born with an open link
// and end with it, so a new link begins with an empty book.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace troupe::detail {

/// The most that one link may keep. A sender's limits may only be smaller than the receiver's.
struct key_limits {
  std::uint32_t lists_max = 1024;
  std::size_t bytes_max = std::size_t{16} << 20;
};

/// A shorter list costs less to bring than to remember.
constexpr std::uint64_t kept_keys_min = 8;

/// The sender's half: decides which list is kept in which slot.
///
/// Invariants:
/// (1) it holds the lists that the receiver's slots hold after all requests so far; so only
/// requests of the class that keeps their order use it.
/// (2) a slot that a request names or fills is not freed by the same request.
class key_cache {
public:
  explicit key_cache(key_limits limits = {}) : limits_(limits) {}

  /// Takes keys out of a request that the receiver has, and has it keep others. The request must
  /// then be sent, before the next one. Lists that do not ascend are for the receiver to judge.
  void shorten(request_message& what);

private:
  struct entry {
    std::uint64_t hash = 0;
    std::uint32_t slot = 0;
    table_id table;
    std::uint32_t width = 0;
    std::vector<std::uint64_t> keys; ///< Copied: the list may be part of a larger buffer.
    std::uint64_t last_request = 0;
  };
  using entries = std::list<entry>;

  key_use use(row_keys& list, std::vector<std::uint32_t>& forgotten);
  bool make_room(std::size_t size_bytes, std::vector<std::uint32_t>& forgotten);
  bool forget(entries::iterator which, std::vector<std::uint32_t>& forgotten);

  key_limits limits_;
  entries entries_; ///< The one that was used last is the first.
  std::unordered_map<std::uint64_t, entries::iterator> by_hash_;
  std::vector<std::uint32_t> free_; ///< Empty slots below used_max_.
  std::uint32_t used_max_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t request_ = 0; ///< Counts them.
};

/// The receiver's half. It checks all that a peer sends.
///
/// Invariants:
/// (1) it holds at most key_limits::lists_max lists of at most key_limits::bytes_max together.
/// (2) every list that it holds ascends.
class key_slots {
public:
  explicit key_slots(key_limits limits = {}) : limits_(limits) {}

  /// Fills in keys that a request names, and keeps lists that it marks; the request is then as if
  /// it had brought all keys. Errors: malformed (a slot that is empty, out of range or
  /// of other rows; more than may be kept); the link must then be closed.
  result<void> complete(request_message& what);

private:
  result<void> forget(std::uint32_t slot);
  result<void> keep(std::uint32_t slot, const row_keys& list);
  result<void> look_up(std::uint32_t slot, row_keys& list) const;

  key_limits limits_;
  std::unordered_map<std::uint32_t, row_keys> slots_; ///< Memory that the decoder made for them.
  std::size_t bytes_ = 0;
};

} // namespace troupe::detail
