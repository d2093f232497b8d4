#include "actors/links/handshake.hpp"

namespace troupe::detail {

namespace {

/// Takes the same time wherever the first difference is.
bool same_secret(std::uint64_t a, std::uint64_t b) {
  volatile std::uint64_t difference = a ^ b;
  return difference == 0;
}

} // namespace

std::optional<failure> objection(const hello& self, const hello& peer) {
  if (peer.version != self.version)
    return failure{errc::version_mismatch, "speaks protocol version " + std::to_string(peer.version)
                                             + ", not " + std::to_string(self.version)};
  if (peer.job != self.job)
    return failure{errc::wrong_job, "belongs to another job"};
  if (self.secret != 0 && peer.secret != 0 && !same_secret(self.secret, peer.secret))
    return failure{errc::wrong_job, "belongs to another run of this job"};
  return std::nullopt;
}

hello answer_to(const hello& self, const hello& peer) {
  hello answer = self;
  if (peer.secret == 0)
    answer.secret = 0;
  return answer;
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
