// Converts the messages of a lane, with the floats of parcels, to Cap'n Proto structs and back.
#include "serialization/detail/parts.hpp"

namespace troupe::wire::detail {

static void write(const channel_open& from, schema::ChannelOpen::Builder to) {
  std::string scratch;
  to.setChannel(cut_text(from.channel, scratch));
  to.setSession(from.session);
  to.setHead(cut_text(from.head, scratch));
  to.setWindow(from.window);
}

static channel_open read(schema::ChannelOpen::Reader from) {
  return {.channel = read_text(from.getChannel()),
          .session = from.getSession(),
          .head = read_text(from.getHead()),
          .window = from.getWindow()};
}

static void write(const parcel_message& from, schema::Parcel::Builder to, body_parts& body) {
  to.setSession(from.session);
  to.setSequence(from.sequence);
  to.setHead({reinterpret_cast<const capnp::byte*>(from.head.data()), from.head.size()});
  auto tensors = to.initTensors(static_cast<unsigned>(from.tensors.size()));
  for (unsigned i = 0; i < tensors.size(); ++i) {
    tensors.set(i, from.tensors[i].count);
    body.add(from.tensors[i].values, from.tensors[i].count);
  }
  body.pad();
}

static parcel_message read(schema::Parcel::Reader from, body_reader& body) {
  const auto head = from.getHead();
  const auto tensors = from.getTensors();
  check_count(head.size(), parcel_head_bytes_max, "bytes in the head of a parcel");
  check_count(tensors.size(), parcel_tensors_max, "tensors in a parcel");
  const auto* first = reinterpret_cast<const std::byte*>(head.begin());
  parcel_message made{from.getSession(), from.getSequence(), {first, first + head.size()}, {}};
  made.tensors.reserve(tensors.size());
  std::uint64_t floats_left = parcel_floats_max;
  for (const std::uint64_t count : tensors) {
    if (count > floats_left)
      throw rejected{"a parcel with more floats than a parcel may have"};
    floats_left -= count;
    made.tensors.push_back({body.take(count), count});
  }
  return made;
}

static void write(const parcels_taken& from, schema::ParcelsTaken::Builder to) {
  to.setSession(from.session);
  to.setCount(from.count);
}

static parcels_taken read(schema::ParcelsTaken::Reader from) {
  return {.session = from.getSession(), .count = from.getCount()};
}

// One overload for each alternative: the compiler refuses a message without one.
static void put(const channel_open& what, schema::Lane::Builder to, body_parts& /*body*/) {
  write(what, to.initOpen());
}
static void put(const parcel_message& what, schema::Lane::Builder to, body_parts& body) {
  write(what, to.initParcel(), body);
}
static void put(const parcels_taken& what, schema::Lane::Builder to, body_parts& /*body*/) {
  write(what, to.initTaken());
}

void write(const channel_message& from, schema::Lane::Builder to, body_parts& body) {
  std::visit([&](const auto& what) { put(what, to, body); }, from);
}

channel_message read(schema::Lane::Reader from, body_reader& body) {
  switch (from.which()) {
  case schema::Lane::OPEN: return read(from.getOpen());
  case schema::Lane::PARCEL: return read(from.getParcel(), body);
  case schema::Lane::TAKEN: return read(from.getTaken());
  }
  throw rejected{"a message of a lane of an unknown kind"};
}

} // namespace troupe::wire::detail
