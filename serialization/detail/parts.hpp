// Converts values to and from Cap'n Proto structs. `read()` may throw; `guarded()` catches it.
#pragma once

#include "serialization/detail/reading.hpp"
#include "serialization/messages.hpp"
#include "serialization/wire.hpp"

#include "serialization/control.capnp.h"
#include "serialization/job.capnp.h"
#include "serialization/push_pull.capnp.h"
#include "serialization/replication.capnp.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe::wire::detail {

/// Hands out the values of a frame's second segment, front to back.
class body_reader {
public:
  body_reader(std::shared_ptr<const std::byte> body, std::size_t size_bytes)
      : body_(std::move(body)), size_bytes_(size_bytes) {}

  float_ptr take(std::uint64_t count);
  /// Takes `count` keys from the next multiple of 8 bytes.
  key_ptr take_keys(std::uint64_t count);
  /// Takes `size_bytes` bytes from the next multiple of 8 bytes.
  byte_ptr take_bytes(std::size_t size_bytes);
  /// Skips to the next multiple of 8 bytes, where the values of a list's next item begin.
  void skip_padding();
  /// Throws unless all but the padding was taken.
  void finish() const;

private:
  std::shared_ptr<const std::byte> body_;
  std::size_t size_bytes_;
  std::size_t taken_bytes_ = 0;
};

/// Gathers the values of a frame's second segment.
class body_parts {
public:
  explicit body_parts(std::vector<frame::part>& parts) : parts_(&parts) {}

  void push_back(frame::part what) {
    size_bytes_ += what.bytes.size();
    parts_->push_back(std::move(what));
  }
  /// Adds `count` numbers, which the message keeps alive.
  template <class T>
  void add(const std::shared_ptr<const T>& numbers, std::uint64_t count) {
    assert(numbers || count == 0);
    if (count > 0)
      push_back({numbers, std::as_bytes(std::span{numbers.get(), count})});
  }
  /// Pads with zeros to the next multiple of 8 bytes.
  void pad();
  std::size_t size_bytes() const { return size_bytes_; }

private:
  std::vector<frame::part>* parts_;
  std::size_t size_bytes_ = 0;
};

// Overloads that only one file needs are static there. In an unnamed namespace they would hide the
// overloads below.

// -- wire_push_pull.cpp --
void write(const request_list& from, capnp::List<schema::Request>::Builder to, body_parts& body);
void write(const answer_list& from, capnp::List<schema::Answer>::Builder to, body_parts& body);
void write(const request_message& from, schema::Request::Builder to, body_parts& body);
void write(const answer_message& from, schema::Answer::Builder to, body_parts& body);
void write(const reply_message& from, schema::Reply::Builder to, body_parts& body);
void write(const failure_message& from, schema::FailureReply::Builder to);
request_list read(capnp::List<schema::Request>::Reader from, body_reader& body);
answer_list read(capnp::List<schema::Answer>::Reader from, body_reader& body);
request_message read(schema::Request::Reader from, body_reader& body);
answer_message read(schema::Answer::Reader from, body_reader& body);
reply_message read(schema::Reply::Reader from, body_reader& body);
failure_message read(schema::FailureReply::Reader from);
/// `keys`: one for each list of rows; empty if all lists are brought.
void write(const push_request& from, std::span<const key_use> keys, schema::PushRequest::Builder to,
           body_parts& body);
void write(const pull_request& from, std::span<const key_use> keys, schema::PullRequest::Builder to,
           body_parts& body);
void write(const push_reply& from, schema::PushReply::Builder to);
void write(const pull_reply& from, schema::PullReply::Builder to, body_parts& body);
push_request read(schema::PushRequest::Reader from, std::span<const key_use> keys,
                  body_reader& body);
pull_request read(schema::PullRequest::Reader from, std::span<const key_use> keys,
                  body_reader& body);
push_reply read(schema::PushReply::Reader from);
pull_reply read(schema::PullReply::Reader from, body_reader& body);
void write(const step_header& from, schema::Step::Builder to);
void write(const range& from, schema::Range::Builder to);
void write(const row_keys& from, schema::Rows::Builder to);
step_header read(schema::Step::Reader from);
range read(schema::Range::Reader from);
/// Returns the rows without their keys.
row_keys read(schema::Rows::Reader from);

// -- wire_replication.cpp --
void write(const chain_metadata& from, schema::Record::Builder to);
void write(const chain_status& from, schema::Status::Builder to);
void write(const replica_message& from, schema::Peer::Builder to, body_parts& body);
chain_metadata read(schema::Record::Reader from);
chain_status read(schema::Status::Reader from);
replica_message read(schema::Peer::Reader from, body_reader& body);

// -- wire_channel.cpp --
void write(const channel_message& from, schema::Lane::Builder to, body_parts& body);
channel_message read(schema::Lane::Reader from, body_reader& body);

// -- wire_link.cpp --
void write(const hello& from, schema::Hello::Builder to);
void write(const rejection& from, schema::Rejection::Builder to);
void write(const failure& from, schema::Failure::Builder to, std::size_t text_max);
void write(const member_id& from, schema::Member::Builder to);
hello read(schema::Hello::Reader from);
rejection read(schema::Rejection::Reader from);
failure read(schema::Failure::Reader from);
member_id read(schema::Member::Reader from);

// -- wire_counters.cpp --
void write(const batch_set& from, schema::BatchSet::Builder to);
void write(const histogram& from, schema::Histogram::Builder to);
void write(const lease& from, schema::Lease::Builder to);
void write(const clock_entry& from, schema::ClockEntry::Builder to);
void write(const function_probe& from, schema::FunctionProbe::Builder to);
void write(const value_checksum& from, schema::ValueChecksum::Builder to);
void write(const program_note& from, schema::ProgramNote::Builder to);
void write(const port_counters& from, schema::PortCounters::Builder to);
void write(const worker_counters& from, schema::WorkerCounters::Builder to);
void write(const server_counters& from, schema::ServerCounters::Builder to);
void write(const actor_counters& from, schema::ActorCounters::Builder to);
batch_set read(schema::BatchSet::Reader from);
histogram read(schema::Histogram::Reader from);
lease read(schema::Lease::Reader from);
clock_entry read(schema::ClockEntry::Reader from);
function_probe read(schema::FunctionProbe::Reader from);
value_checksum read(schema::ValueChecksum::Reader from);
program_note read(schema::ProgramNote::Reader from);
port_counters read(schema::PortCounters::Reader from);
worker_counters read(schema::WorkerCounters::Reader from);
server_counters read(schema::ServerCounters::Reader from);
actor_counters read(schema::ActorCounters::Reader from);

// -- wire_status.cpp --
void write(const status_message& from, schema::StatusMessage::Builder to);
void write(const lease_progress& from, schema::LeaseProgress::Builder to);
void write(const file_entry& from, schema::FileEntry::Builder to);
void write(const replica_status& from, schema::ReplicaStatus::Builder to);
status_message read(schema::StatusMessage::Reader from);
lease_progress read(schema::LeaseProgress::Reader from);
file_entry read(schema::FileEntry::Reader from);
replica_status read(schema::ReplicaStatus::Reader from);

// -- wire_desired.cpp --
void write(const desired_state& from, schema::DesiredState::Builder to);
void write(const chain_entry& from, schema::ChainEntry::Builder to);
void write(const member_address& from, schema::MemberAddress::Builder to);
void write(const desired_chain& from, schema::DesiredChain::Builder to);
void write(const member_status& from, schema::MemberStatus::Builder to);
void write(const event_field& from, schema::JobEvent::Field::Builder to);
void write(const job_event& from, schema::JobEvent::Builder to);
desired_state read(schema::DesiredState::Reader from);
chain_entry read(schema::ChainEntry::Reader from);
member_address read(schema::MemberAddress::Reader from);
desired_chain read(schema::DesiredChain::Reader from);
member_status read(schema::MemberStatus::Reader from);
event_field read(schema::JobEvent::Field::Reader from);
job_event read(schema::JobEvent::Reader from);

// -- wire_job.cpp --
void write(const job_spec& from, schema::Job::Builder to);
void write(const table_spec& from, schema::Table::Builder to);
void write(const own_option& from, schema::OwnOption::Builder to);
/// Accepts only jobs that pass validate().
job_spec read(schema::Job::Reader from);
table_spec read(schema::Table::Reader from);
own_option read(schema::OwnOption::Reader from);

// -- lists of the values above, and failures that may be absent; they stand last so that they find
// every overload --

/// Leaves the field null without a failure. An empty text does not make a failure absent.
template <class Builder>
void write_failure(const std::optional<failure>& from, Builder to) {
  if (from)
    write(*from, to.initFailure(), text_bytes_max);
}

template <class Reader>
std::optional<failure> read_failure(Reader from) {
  return from.hasFailure() ? std::optional{read(from.getFailure())} : std::nullopt;
}

template <class T, class List>
std::vector<T> read_list(const List& list, std::size_t count_max, const char* name) {
  check_count(list.size(), count_max, name);
  std::vector<T> values;
  values.reserve(list.size());
  for (const auto element : list)
    values.push_back(read(element));
  return values;
}

template <class T, class List>
void write_list(const std::vector<T>& values, List list) {
  for (unsigned i = 0; i < list.size(); ++i)
    write(values[i], list[i]);
}

} // namespace troupe::wire::detail
