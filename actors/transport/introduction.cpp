#include "actors/transport/introduction.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace troupe::detail {

namespace {

failure unproved(const char* claim, const char* proof, const hello& peer,
                 const std::vector<role>& proved) {
  return {errc::untrusted,
          std::string{claim}.append(traits_of(peer.from.role).name) + proof + names_of(proved)};
}

failure no_link_with(role peer, role self) {
  return {errc::untrusted, std::string{"has the role "}.append(traits_of(peer).name)
                             + ", which has no links with the role "
                             + std::string{traits_of(self).name}};
}

/// Returns the first server function whose results differ; empty if all that both know agree.
std::string function_that_differs(const hello& self, const hello& peer) {
  for (const auto& mine : self.probes)
    for (const auto& theirs : peer.probes)
      if (mine.function == theirs.function && mine.crc32c != theirs.crc32c) {
        char numbers[64];
        std::snprintf(numbers, sizeof numbers, " otherwise (%08x, the job %08x)", theirs.crc32c,
                      mine.crc32c);
        return "computes '" + mine.function + "'" + numbers + ": build all hosts alike";
      }
  return {};
}

} // namespace

result<std::size_t> introduction::take(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(bytes.size(), preamble_bytes - filled_);
  std::ranges::copy(bytes.first(size), bytes_.begin() + filled_);
  filled_ += size;
  if (!may_be_preamble(std::span{bytes_}.first(filled_)))
    return {errc::malformed, "no preamble"};
  return size;
}

std::optional<peer_rejection> introduction::rejection_for(const preamble& self,
                                                          bool secret_needed) const {
  if (const auto here = rejection_of(self, peer()))
    return peer_rejection{*here, *rejection_of(peer(), self)};
  if (secret_needed && self.secret != 0 && peer().secret == 0)
    return peer_rejection{{errc::wrong_job, "belongs to another host, and this job admits none"},
                          {errc::wrong_job, "admits no other hosts: start the job with --listen"}};
  return std::nullopt;
}

std::optional<peer_rejection>
introduction::rejection_for(const hello& self, const hello& peer,
                            const std::optional<std::vector<role>>& proved) {
  if (const auto here = rejection_of(self, peer))
    return peer_rejection{*here, *rejection_of(peer, self)};
  if (const role mine = self.from.role, theirs = peer.from.role; !may_have_link(mine, theirs))
    return peer_rejection{no_link_with(theirs, mine), no_link_with(mine, theirs)};
  if (const auto differs = function_that_differs(self, peer); !differs.empty())
    return peer_rejection{
      {errc::version_mismatch, differs},
      {errc::version_mismatch, "found that " + std::string{traits_of(peer.from.role).name} + " "
                                 + std::to_string(peer.from.index) + " " + differs}};
  if (proved && std::ranges::find(*proved, peer.from.role) == proved->end())
    return peer_rejection{
      unproved("claims to be ", " with a certificate for ", peer, *proved),
      unproved("does not take us for ", " with a certificate for ", peer, *proved)};
  return std::nullopt;
}

} // namespace troupe::detail
