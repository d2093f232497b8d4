// Converts failures and the messages that open a link to Cap'n Proto structs and back.
#include "serialization/detail/parts.hpp"

#include <string_view>

namespace troupe::wire::detail {

void write(const member_id& from, schema::Member::Builder to) {
  to.setRole(static_cast<std::uint8_t>(from.role));
  to.setIndex(from.index);
  to.setIncarnation(from.incarnation.value);
}

member_id read(schema::Member::Reader from) {
  return {.role = read_enum(from.getRole(), role_max, "role"),
          .index = from.getIndex(),
          .incarnation = {from.getIncarnation()}};
}

void write(const failure& from, schema::Failure::Builder to, std::size_t text_max) {
  std::string scratch;
  to.setCode(static_cast<std::uint8_t>(from.code));
  to.setText(cut_text(from.text, scratch, text_max));
}

failure read(schema::Failure::Reader from) {
  // The numbers of errc have holes; unnamed numbers are unknown.
  const auto code = static_cast<errc>(from.getCode());
  if (to_string(code) == std::string_view{"unknown"})
    throw rejected{"unknown error code: " + std::to_string(from.getCode())};
  return {code, read_text(from.getText())};
}

void write(const function_probe& from, schema::FunctionProbe::Builder to) {
  to.setFunction(from.function);
  to.setCrc32c(from.crc32c);
}

function_probe read(schema::FunctionProbe::Reader from) {
  return {read_text(from.getFunction(), name_length_max), from.getCrc32c()};
}

void write(const hello& from, schema::Hello::Builder to) {
  to.setJob(from.job);
  to.setSecret(from.secret);
  write(from.from, to.initFrom());
  to.setReads(from.reads);
  to.setSends(from.sends);
  write_list(from.probes, to.initProbes(static_cast<unsigned>(from.probes.size())));
}

hello read(schema::Hello::Reader from) {
  // decode() has refused every other version.
  return {.version = protocol_version,
          .job = from.getJob(),
          .secret = from.getSecret(),
          .from = read(from.getFrom()),
          .reads = from.getReads(),
          .sends = from.getSends(),
          .probes = read_list<function_probe>(from.getProbes(), functions_max, "probes")};
}

void write(const rejection& from, schema::Rejection::Builder to) {
  write(from.why, to.initWhy(), refusal_bytes_max);
}

rejection read(schema::Rejection::Reader from) { return {read(from.getWhy())}; }

} // namespace troupe::wire::detail
