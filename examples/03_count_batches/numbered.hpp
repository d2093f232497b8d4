// Numbers the parcels of an `out` port, and checks those of an `in` port: none may come twice, out
// of order or outside of a session, and a session may lose `parcel_window` parcels at most.
#pragma once

#include "troupe/own_actors.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace count_batches {

struct parcel_number {
  std::uint64_t sender = 0;  ///< Drawn by each incarnation of a sending port.
  std::uint64_t session = 0; ///< Sessions of this lane that the sender has heard of.
  std::uint64_t first = 0;   ///< The number of the session's first parcel.
  std::uint64_t number = 0;  ///< From 1 on, for each lane.
  std::uint64_t lane = 0;    ///< The receiver's number among the sender's peers.
};

using number_port = troupe::out<parcel_number>;
using numbered_port = troupe::in<parcel_number>;
using numbered_parcel = troupe::parcel<parcel_number>;

/// A file of what happens at a port, for a judge that outlives each process.
class parcel_log {
public:
  /// An empty folder: nothing is written.
  parcel_log(const std::string& folder, const std::string& port);

  void note(std::string_view what, const parcel_number& which) const;
  /// `what`: "lost" or "joined".
  void note(std::string_view what, std::uint32_t peer) const;

private:
  std::shared_ptr<std::FILE> file_;
};

/// Sends numbered parcels through a port, whose callbacks it sets.
class number_sender {
public:
  number_sender(number_port& port, const std::string& folder);

  /// Sends a window of parcels to each peer, and half of one more when there is room again.
  void burst(const troupe::node_notes& notes);

private:
  struct sent_lane {
    bool has_session = false;
    std::uint64_t session = 0, first = 1, sent = 0, owed = 0;
  };

  void send_owed(std::uint32_t to);

  number_port* port_;
  parcel_log log_;
  std::uint64_t self_;
  std::vector<sent_lane> lanes_;
  std::uint64_t fresh_ = 0; ///< Parcels sent since the last note.
};

/// Checks the parcels of a port, whose callbacks it sets. A violation throws std::runtime_error
/// within a callback, so the job stops with its text.
class number_checker {
public:
  number_checker(numbered_port& port, const std::string& folder);

  /// Adds what came since the last call to the counts "taken" and "missing".
  void count(const troupe::node_notes& notes);

private:
  struct taken_lane {
    bool has_session = false;
    bool is_fresh = false;             ///< No parcel of the session came yet.
    parcel_number last = {};           ///< Of the last parcel; number 0: none came yet.
    std::set<std::uint64_t> gone = {}; ///< Incarnations that another one followed.
  };

  taken_lane& lane_of(std::uint32_t peer);
  void take(const numbered_parcel& what);
  void check_session(taken_lane& of, const parcel_number& now, std::uint32_t from);
  void require(bool holds, std::uint32_t from, const std::string& broken) const;

  numbered_port* port_;
  parcel_log log_;
  std::vector<taken_lane> lanes_;
  std::uint64_t taken_ = 0, missing_ = 0; ///< Since the last count.
};

} // namespace count_batches
