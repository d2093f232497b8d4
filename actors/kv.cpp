#include "actors/kv.hpp"

#include "caf/message.hpp"
#include "caf/sec.hpp"

namespace troupe {

namespace {

constexpr auto category = caf::atom("troupe");

} // namespace

caf::error to_caf(const failure& why) {
  return {static_cast<std::uint8_t>(why.code), category, caf::make_message(why.text)};
}

failure from_caf(const caf::error& why) {
  if (why.category() == category) {
    const auto& context = why.context();
    return {static_cast<errc>(why.code()),
            context.match_elements<std::string>() ? context.get_as<std::string>(0) : std::string{}};
  }
  if (why == caf::sec::request_timeout)
    return {errc::timed_out, "no answer in time"};
  return {errc::peer_lost, "the receiver is gone"};
}

caf::error reason_to_end(const desired_state& what) {
  return what.failed ? to_caf({errc::fenced, what.failed->text}) : caf::error{};
}

} // namespace troupe
