#include "actors/transport/handshake.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe::detail {

namespace {

/// Takes the same time wherever the first difference is.
bool same_secret(std::uint64_t a, std::uint64_t b) {
  volatile std::uint64_t difference = a ^ b;
  return difference == 0;
}

} // namespace

bool may_be_tls(std::span<const std::byte> beginning) {
  constexpr std::byte alert{21}, handshake{22}, major_version{3};
  return !beginning.empty() && (beginning[0] == alert || beginning[0] == handshake)
         && (beginning.size() < 2 || beginning[1] == major_version);
}

std::optional<failure> rejection_of(const preamble& self, const preamble& peer) {
  if (peer.version != self.version)
    return failure{errc::version_mismatch, "speaks protocol version " + std::to_string(peer.version)
                                             + ", not " + std::to_string(self.version)};
  if (self.secret != 0 && peer.secret != 0 && !same_secret(self.secret, peer.secret))
    return failure{errc::wrong_job, "belongs to another job, or to another run of this one"};
  return std::nullopt;
}

std::optional<failure> rejection_of(const hello& self, const hello& peer) {
  if (peer.job != self.job)
    return failure{
      errc::wrong_job,
      "belongs to another job: program, data, model, batch, seed and optimizer must be the same"};
  if (const auto unread = peer.sends & ~self.reads)
    return failure{errc::version_mismatch,
                   "compresses with " + names_of(unread) + ", which this program cannot read"};
  if (const auto unread = self.sends & ~peer.reads)
    return failure{errc::version_mismatch, "cannot read the encoding of --compress ("
                                             + names_of(unread)
                                             + "): leave it out, or start the same program there"};
  return std::nullopt;
}

preamble answer_to(const preamble& self, const preamble& peer) {
  return {self.version, peer.secret == 0 ? 0 : self.secret};
}

std::string one_line(std::string text) {
  constexpr std::size_t length_max = 300; // A line of a log, not a page.
  if (text.size() > length_max)
    text.resize(length_max);
  for (char& each : text)
    if (static_cast<unsigned char>(each) < 0x20 || each == 0x7f)
      each = ' ';
  return text;
}

} // namespace troupe::detail
