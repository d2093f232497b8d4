// Replaces keys that a link has carried before by a number. The sender of requests keeps the lists
// that it sent in a `key_cache`, the receiver in a `key_slots`. Both last as long as the link is
// open, so a new link begins with an empty cache.
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

/// Limits the lists of one link. The receiver's limits are fixed; a sender's may only be smaller.
struct key_limits {
  std::uint32_t lists_max = 1024;
  std::size_t bytes_max = std::size_t{16} << 20;
};

/// A list with fewer keys costs less to send than to keep.
constexpr std::uint64_t kept_keys_min = 8;

/// Decides which list is kept in which slot; the sender's half.
///
/// Invariants:
/// (1) it holds the lists that the receiver's key slots hold once all requests so far were read. So
///     only requests of class `bulk` use it, as they keep their order.
/// (2) a slot that a request names or fills is not freed by the same request.
class key_cache {
public:
  explicit key_cache(key_limits limits = {}) : limits_(limits) {}

  /// Removes keys that the receiver has from a request, and marks others to be kept. The request
  /// must be sent before the next one is shortened. Lists that do not ascend are left unchanged;
  /// the receiver checks them.
  void shorten(request_message& what);

private:
  struct entry {
    std::uint64_t hash = 0;
    std::uint32_t slot = 0;
    table_id table;
    std::uint32_t width = 0;
    std::vector<std::uint64_t> keys; ///< A copy: the list may be part of a larger buffer.
    std::uint64_t last_request = 0;
  };
  using entries = std::list<entry>;

  key_use use(row_keys& list, std::vector<std::uint32_t>& forgotten);
  bool make_room(std::size_t size_bytes, std::vector<std::uint32_t>& forgotten);
  bool forget(entries::iterator which, std::vector<std::uint32_t>& forgotten);

  key_limits limits_;
  entries entries_; ///< Most recently used first.
  std::unordered_map<std::uint64_t, entries::iterator> by_hash_;
  std::vector<std::uint32_t> free_; ///< Empty slots below used_max_.
  std::uint32_t used_max_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t request_ = 0; ///< Number of the current request.
};

/// Keeps lists and puts them into requests; the receiver's half. Checks all input, as the peer may
/// be anyone.
///
/// Invariants:
/// (1) it holds at most key_limits::lists_max lists of at most key_limits::bytes_max together.
/// (2) every list that it holds ascends.
class key_slots {
public:
  explicit key_slots(key_limits limits = {}) : limits_(limits) {}

  /// Fills in the lists that a request names and keeps the lists that it marks. The request is then
  /// as if it had carried all of its keys. Errors: malformed, if a slot is empty, in use, out of
  /// range or of other rows, or if a limit is exceeded. The link must then be closed.
  result<void> complete(request_message& what);

private:
  result<void> forget(std::uint32_t slot);
  result<void> keep(std::uint32_t slot, const row_keys& list);
  result<void> look_up(std::uint32_t slot, row_keys& list) const;

  key_limits limits_;
  std::unordered_map<std::uint32_t, row_keys> slots_; ///< In memory that the decoder made.
  std::size_t bytes_ = 0;
};

} // namespace troupe::detail
