// Fuzzes a whole connection from the first byte of an accepted peer. Input: kind of the acceptor,
// how the stream behaves, the bytes.
#include "actors/transport/connection.hpp"
#include "tests/actors/fragment_bytes.hpp"
#include "tests/serialization/fuzz_main.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

using namespace troupe;
using namespace troupe::detail;
using namespace troupe::test;

namespace {

constexpr std::uint64_t secret = 12345;
constexpr std::size_t segment_bytes_max = std::size_t{32} << 10;

/// Delivers the input; its first bytes choose how much of each write is taken.
class scripted_stream final : public stream {
public:
  scripted_stream(std::uint64_t script, std::span<const std::byte> bytes, int poll_descriptor)
      : script_(script), rest_(bytes), poll_descriptor_(poll_descriptor) {}

  result<bool> establish() override { return true; }
  transfer write(std::span<iovec> parts) override {
    std::size_t size = 0;
    for (const iovec& each : parts) {
      volatile std::byte last = static_cast<std::byte*>(each.iov_base)[each.iov_len - 1];
      (void)last;
      size += each.iov_len;
    }
    switch (script_.below(8)) {
    case 0: return {transfer::status::would_block};
    case 1: return {transfer::status::moved, 1 + script_.below(size)};
    default: return {transfer::status::moved, size};
    }
  }
  transfer read(std::span<iovec> places) override {
    std::size_t size = 0, room = 1 + script_.below(2000);
    for (const iovec& each : places) {
      const std::size_t step = std::min({each.iov_len, rest_.size(), room});
      if (step != 0)
        std::memcpy(each.iov_base, rest_.data(), step);
      rest_ = rest_.subspan(step);
      room -= step;
      size += step;
    }
    if (size != 0)
      return {transfer::status::moved, size};
    return {transfer::status::ended};
  }
  bool readable() const override { return !rest_.empty(); }
  std::uint32_t interest(bool queued) const override {
    return queued ? EPOLLIN | EPOLLOUT : EPOLLIN;
  }
  void finish_writing() override {}
  void reset() override {}
  int poll_descriptor() const override { return poll_descriptor_; }
  std::string local() const override { return "here"; }
  descriptor take_passed() override {
    if (script_.below(16) != 0)
      return {};
    descriptor made{::memfd_create("fuzz", MFD_ALLOW_SEALING)};
    (void)!::ftruncate(made.get(), arena_bytes_min);
    (void)::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return made;
  }

private:
  random_source script_;
  std::span<const std::byte> rest_;
  const int poll_descriptor_;
};

/// Checks the order of events: opened, received, lost; or rejected alone.
struct events_seen {
  bool opened = false;
  bool ended = false;
};

struct acceptor {
  acceptor(std::uint64_t own_secret, bool admits)
      : context({wire::protocol_version, 7, own_secret, {role::server, 1, {2}}}, events(),
                {.admit_without_secret = admits}, 4096) {}

  link_events events() {
    link_events made;
    made.opened = [this](link_id, const hello& peer, const std::string&) {
      const auto own = context.self.secret;
      const bool knows = own == 0 || peer.secret == own
                         || (peer.secret == 0 && context.options.admit_without_secret);
      if (seen.opened || seen.ended || !knows || peer.job != context.self.job)
        std::abort();
      seen.opened = true;
    };
    made.received = [this](link_id, message what) {
      if (!seen.opened || seen.ended)
        std::abort();
      link->out().send(traffic_class_of(what), wire::encode(what));
    };
    made.lost = [this](link_id, const failure&) {
      if (!seen.opened || std::exchange(seen.ended, true))
        std::abort();
    };
    made.rejected = [this](const std::string&, const failure&) {
      if (seen.opened || std::exchange(seen.ended, true))
        std::abort();
    };
    return made;
  }

  events_seen seen;
  std::unique_ptr<connection> link;
  link_context context;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static acceptor kinds[] = {{0, false}, {secret, false}, {secret, true}};
  static const int always = ::eventfd(0, EFD_CLOEXEC);
  if (size < 2)
    return 0;
  const auto bytes = std::as_bytes(std::span{data + 2, size - 2});
  if (has_large_segment(bytes, segment_bytes_max))
    return 0;
  acceptor& self = kinds[data[0] % std::size(kinds)];
  self.seen = {};
  self.link = std::make_unique<connection>(link_id{1}, self.context, "peer");
  const auto now = connection::clock::now();
  self.link->begin_accepted(std::make_unique<scripted_stream>(data[1], bytes, always), now);
  for (std::size_t round = 0; round <= size && !self.link->finished(); ++round)
    self.link->ready(EPOLLIN | EPOLLOUT, now);
  self.link->check_time(now + std::chrono::hours{1});
  if (!self.link->finished() || !self.seen.ended)
    std::abort();
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return mutate_or_make(data, size, max_size, seed, [](random_source& random) {
    const std::uint64_t told = random.chance() ? secret : random.below(2);
    std::vector<std::byte> made{static_cast<std::byte>(random.next()),
                                static_cast<std::byte>(random.next())};
    append(made, encode(preamble{wire::protocol_version, told}));
    const hello first{wire::protocol_version, 7, 0, random_member(random)};
    const auto frame = flatten(wire::encode(first));
    append(made, encode(fragment_header{static_cast<std::uint32_t>(frame.size())}));
    append(made, frame);
    append(made, random_fragments(random));
    return made;
  });
}
#endif
