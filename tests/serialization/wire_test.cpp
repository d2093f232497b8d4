#include "serialization/wire.hpp"

#include "doctest/doctest.h"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/random_messages.hpp"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace troupe::test::wire_test {

namespace {

request_message push_of(std::vector<piece> pieces) {
  return {0, {push_request{{}, {}, 0, 0, std::move(pieces)}, {}}};
}

request_message pull_of(std::vector<range> ranges) {
  return {0, {{}, pull_request{{}, false, std::move(ranges)}}};
}

std::uint32_t word32(const std::vector<std::byte>& bytes, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

/// Returns the bytes with the only word `from` changed to `to`.
std::vector<std::byte> with_word(std::vector<std::byte> bytes, std::uint64_t from,
                                 std::uint64_t to) {
  auto patched = 0;
  for (std::size_t i = wire::prefix_bytes; i + 8 <= bytes.size(); i += 8)
    if (std::memcmp(bytes.data() + i, &from, 8) == 0) {
      std::memcpy(bytes.data() + i, &to, 8);
      ++patched;
    }
  REQUIRE(patched == 1);
  return bytes;
}

failure refused(const result<message>& decoded) {
  REQUIRE(!decoded);
  return decoded.error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("every message survives the wire") {
  random_source random{1};
  for (std::size_t kind = 0; kind < message_kinds; ++kind)
    for (int i = 0; i < 300; ++i) {
      const auto sent = random_message(random, kind);
      const auto received = decode_frame(flatten(wire::encode(sent)));
      CAPTURE(kind);
      REQUIRE_MESSAGE(received, received.error().text);
      REQUIRE(same(sent, *received));
    }
}

TEST_CASE("a failure with an empty text is there after the wire, and without one there is none") {
  const auto sent_and_received = [](const message& sent) {
    const auto received = decode_frame(flatten(wire::encode(sent)));
    REQUIRE_MESSAGE(received, received.error().text);
    CHECK(same(sent, *received));
    return *received;
  };
  const std::optional<failure> reasons[] = {
    {}, failure{errc::job_failed, ""}, failure{errc::damaged, "a rotten file"}};
  for (const auto& why : reasons) {
    status_message sent;
    const auto status = [&](auto body) {
      sent.body = std::move(body);
      return std::get<status_message>(sent_and_received(sent)).body;
    };
    worker_status worker;
    worker.failed = why;
    CHECK(std::get<worker_status>(status(worker)).failed == why);
    observer_status observer;
    observer.failed = why;
    CHECK(std::get<observer_status>(status(observer)).failed == why);
    server_status server;
    server.chains.emplace_back().failed = why;
    CHECK(std::get<server_status>(status(server)).chains.at(0).failed == why);
    const auto desired = sent_and_received(desired_state{.to = {}, .failed = why, .body = {}});
    CHECK(std::get<desired_state>(desired).failed == why);
  }
}

TEST_CASE("a message much larger than was guessed survives the wire") {
  random_source random{2};
  auto big = random_job_status(random);
  for (int i = 0; i < 2000; ++i)
    big.members.push_back({.member = random_member(random),
                           .worker = random_worker_counters(random),
                           .server = random_server_counters(random)});
  const message sent = desired_state{.to = {}, .failed = {}, .body = big};
  const auto received = decode_frame(flatten(wire::encode(sent)));
  REQUIRE(received);
  CHECK(same(sent, *received));
}

TEST_CASE("numbers at their limits and special floats survive the wire") {
  worker_status body;
  body.counters.loss_sum = -std::numeric_limits<double>::infinity();
  body.counters.samples = ~std::uint64_t{0};
  body.leases = {{{~std::uint64_t{0}, {batches_max}, 1u << 16, ~0u}, {{~std::uint64_t{0}}}}};
  const message sent =
    status_message{.from = {role::observer, ~0u, {~std::uint64_t{0}}}, .body = body};
  const auto received = decode_frame(flatten(wire::encode(sent)));
  REQUIRE(received);
  CHECK(same(sent, *received));

  const float odd[] = {-0.0f, 1e-40f, std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()};
  const message push = push_of({{{{0}, 0, 4}, {std::make_shared<int>(), odd}}});
  const auto pushed = decode_frame(flatten(wire::encode(push)));
  REQUIRE(pushed);
  CHECK(same(push, *pushed));
}

TEST_CASE("tensors are gathered from the sender's memory and point into the received body") {
  const auto values = std::make_shared<std::vector<float>>(1000, 1.0f);
  const auto frame = wire::encode(push_of({{{{0}, 0, 1000}, {values, values->data()}}}));
  REQUIRE(frame.body.size() == 1);
  CHECK(static_cast<const void*>(frame.body[0].bytes.data()) == values->data());

  auto body = aligned_copy(frame.body[0].bytes);
  const auto head = aligned_copy(std::span{frame.head}.subspan(wire::prefix_bytes));
  auto received = wire::decode({head.get(), frame.head.size() - wire::prefix_bytes}, body, 4000);
  REQUIRE(received);
  const auto& piece = only_request(*received).what.push->pieces.at(0);
  CHECK(static_cast<const void*>(piece.values.get()) == body.get());
  CHECK(body.use_count() == 2);
  received = failure{};
  CHECK(body.use_count() == 1);
}

TEST_CASE("a frame is a stream of two segments whose second is padded with zeros") {
  const auto values = std::make_shared<std::vector<float>>(3, 1.0f);
  const auto bytes = flatten(wire::encode(push_of({{{{0}, 0, 3}, {values, values->data()}}})));
  CHECK(word32(bytes, 0) == 1);
  CHECK(word32(bytes, 8) == 2);
  CHECK(word32(bytes, 12) == 0);
  CHECK(bytes.size() == wire::prefix_bytes + 8 * (word32(bytes, 4) + word32(bytes, 8)));
  CHECK(word32(bytes, bytes.size() - 4) == 0);
}

TEST_CASE("a peer of another version is told apart by bytes that never change") {
  auto bytes = flatten(wire::encode(hello{.version = wire::protocol_version + 1, .from = {}}));
  CHECK(word32(bytes, wire::prefix_bytes + 8) == wire::protocol_version + 1);
  CHECK(bytes.size() <= wire::hello_bytes_max);
  const auto why = refused(decode_frame(bytes));
  CHECK(why.code == errc::version_mismatch);
  CHECK(why.text
        == "the peer speaks protocol version " + std::to_string(wire::protocol_version + 1)
             + ", this process speaks " + std::to_string(wire::protocol_version));

  // A later version may put any bytes behind the first 16.
  for (auto i = wire::prefix_bytes + 16; i < bytes.size(); ++i)
    bytes[i] = std::byte{0xff};
  CHECK(refused(decode_frame(bytes)).code == errc::version_mismatch);
}

TEST_CASE("a stranger's bytes are not taken for another version") {
  auto bytes = flatten(wire::encode(hello{.version = wire::protocol_version + 1, .from = {}}));
  bytes[wire::prefix_bytes + 12] = std::byte{};
  CHECK(refused(decode_frame(bytes)).code == errc::malformed);
}

TEST_CASE("a refusal fits into the first frame, however long its text") {
  const auto bytes = flatten(wire::encode(rejection{{errc::wrong_job, std::string(100'000, 'x')}}));
  CHECK(bytes.size() <= wire::hello_bytes_max);
  const auto received = decode_frame(bytes);
  REQUIRE(received);
  CHECK(std::get<rejection>(*received).why.text == std::string(1024, 'x'));
}

TEST_CASE("texts are cut by the sender to what receivers accept") {
  const auto received = decode_frame(
    flatten(wire::encode(failure_message{1, {errc::not_ready, std::string(9999, 'x')}})));
  REQUIRE(received);
  const auto& failed = std::get<answer_list>(*received).items.at(0);
  CHECK(std::get<failure_message>(failed).what.text.size() == 4096);
}

TEST_CASE("a prefix that is not ours or passes a limit is refused") {
  auto prefix = [](std::uint32_t further, std::uint64_t head, std::uint64_t body,
                   std::uint32_t padding) {
    const std::uint32_t words[] = {further, static_cast<std::uint32_t>(head / 8),
                                   static_cast<std::uint32_t>(body / 8), padding};
    std::array<std::byte, wire::prefix_bytes> bytes;
    std::memcpy(bytes.data(), words, sizeof(words));
    return wire::decode_prefix(bytes);
  };
  const auto good = prefix(1, 24, 8, 0);
  REQUIRE(good);
  CHECK(good->head_bytes == 24);
  CHECK(good->body_bytes == 8);
  CHECK(prefix(1, wire::head_bytes_max, wire::body_bytes_max, 0));
  CHECK(!prefix(0, 24, 8, 0));
  CHECK(!prefix(2, 24, 8, 0));
  CHECK(!prefix(1, 16, 8, 0));
  CHECK(!prefix(1, 24, 8, 1));
  CHECK(!prefix(1, wire::head_bytes_max + 8, 0, 0));
  CHECK(!prefix(1, 24, wire::body_bytes_max + 8, 0));
}

TEST_CASE("values must be as many as the pieces say") {
  const auto values = std::make_shared<std::vector<float>>(5, 1.0f);
  const auto frame = wire::encode(push_of({{{{0}, 0, 5}, {values, values->data()}}}));
  const auto head = std::span{frame.head}.subspan(wire::prefix_bytes);
  const std::vector<std::byte> body(48);
  CHECK(decode_segments(head, std::span{body}.first(24)));
  for (std::size_t size : {0, 8, 16, 32, 40})
    CHECK(refused(decode_segments(head, std::span{body}.first(size))).code == errc::malformed);

  const auto bare = wire::encode(hello{.version = 1, .from = {}});
  CHECK(
    !decode_segments(std::span{bare.head}.subspan(wire::prefix_bytes), std::span{body}.first(8)));
}

TEST_CASE("an entry's pushes share its body, each beginning at a multiple of eight bytes") {
  auto push_with = [](std::size_t count) {
    const auto values = std::make_shared<std::vector<float>>(count, 1.0f);
    return std::make_shared<const push_request>(
      push_request{{}, {}, 0, 0, {{{{0}, 0, count}, {values, values->data()}}}});
  };
  const message sent =
    replica_message{{}, {}, entry_message{{}, {{push_with(3), push_with(5)}, {}}}};
  const auto received = decode_frame(flatten(wire::encode(sent)));
  REQUIRE(received);
  CHECK(same(sent, *received));
  const auto& pushes =
    std::get<entry_message>(std::get<replica_message>(*received).what).entry.pushes;
  const auto* first = pushes.at(0)->pieces.at(0).values.get();
  CHECK(pushes.at(1)->pieces.at(0).values.get() == first + 4);
}

TEST_CASE("an entry without pushes is refused") {
  const message sent = replica_message{{}, {}, entry_message{}};
  CHECK(contains(refused(decode_frame(flatten(wire::encode(sent)))).text, "without pushes"));
}

TEST_CASE("parcels are read in place, and refused beyond the limits of a parcel") {
  const auto parcel = [](std::size_t head_bytes, std::vector<std::uint64_t> counts) {
    parcel_message made{1, 2, std::vector<std::byte>(head_bytes), {}};
    for (const auto count : counts) {
      const auto values = std::make_shared<std::vector<float>>(count, 1.5f);
      made.tensors.push_back({{values, values->data()}, count});
    }
    return message{channel_message{made}};
  };
  const auto received = [](const message& what) {
    return decode_frame(flatten(wire::encode(what)));
  };
  const auto large = parcel(parcel_head_bytes_max, {1000, 0, 3});
  const auto frame = wire::encode(large);
  const auto& sent = std::get<parcel_message>(std::get<channel_message>(large));
  REQUIRE(frame.body.size() == 3); // The tensors with values, and padding.
  CHECK(static_cast<const void*>(frame.body[0].bytes.data()) == sent.tensors[0].values.get());
  const auto came = received(large);
  REQUIRE(came);
  CHECK(same(large, *came));
  const auto& tensors = std::get<parcel_message>(std::get<channel_message>(*came)).tensors;
  CHECK(tensors[2].values.get() == tensors[0].values.get() + 1000);
  CHECK(contains(refused(received(parcel(parcel_head_bytes_max + 1, {}))).text,
                 "bytes in the head of a parcel: 4097"));
  CHECK(received(parcel(0, std::vector<std::uint64_t>(parcel_tensors_max))));
  CHECK(
    contains(refused(received(parcel(0, std::vector<std::uint64_t>(parcel_tensors_max + 1)))).text,
             "tensors in a parcel: 257"));
  constexpr std::uint64_t count = 0x333; // This word is unique in the message.
  const auto bytes = flatten(wire::encode(parcel(8, {count})));
  REQUIRE(decode_frame(bytes));
  for (const auto other :
       {count - 9, count + 9, parcel_floats_max, parcel_floats_max + 1, ~std::uint64_t{0}}) {
    CAPTURE(other);
    const auto why = refused(decode_frame(with_word(bytes, count, other)));
    CHECK(why.code == errc::malformed);
    CHECK(contains(why.text, "more floats than a parcel") == (other > parcel_floats_max));
  }
}

TEST_CASE("more ports than a process has are refused") {
  for (const auto count : {ports_max, ports_max + 1}) {
    actor_status of_actor;
    worker_status of_worker;
    of_actor.counters.ports = of_worker.counters.ports = std::vector<port_counters>(count);
    const auto received = [](auto body) {
      return decode_frame(flatten(wire::encode(status_message{.from = {}, .body = body})));
    };
    CHECK(static_cast<bool>(received(of_actor)) == (count == ports_max));
    CHECK(static_cast<bool>(received(of_worker)) == (count == ports_max));
  }
}

TEST_CASE("packed pieces lie at multiples of eight bytes behind all else") {
  const auto floats = std::make_shared<std::vector<float>>(3, 1.0f);
  auto sent = push_of({{{{0}, 0, 3}, {floats, floats->data()}}});
  random_source random{6};
  while (sent.what.push->packed.size() < 2)
    sent.what.push->packed = random_packed(random);
  const auto received = decode_frame(flatten(wire::encode(sent)));
  REQUIRE(received);
  CHECK(same(message{sent}, *received));
  const auto& push = *std::get<request_list>(*received).items.front().what.push;
  const auto* begin = reinterpret_cast<const std::byte*>(push.pieces.front().values.get());
  CHECK(push.packed.front().bytes.get() == begin + 16);
}

TEST_CASE("packed pieces that nobody makes are refused") {
  const auto bytes = std::make_shared<std::vector<std::uint64_t>>(3);
  const auto received = [&](range where, encoding how, std::uint32_t size_bytes, int times = 1) {
    auto sent = push_of({});
    for (int i = 0; i < times; ++i)
      sent.what.push->packed.push_back(
        {where, how, size_bytes, {bytes, reinterpret_cast<const std::byte*>(bytes->data())}});
    return decode_frame(flatten(wire::encode(sent)));
  };
  CHECK(received({{0}, 0, 5}, encoding::int8, 24));
  CHECK(!received({{0}, 0, 5}, encoding::f32, 24));
  CHECK(!received({{0}, 0, 5}, static_cast<encoding>(7), 24));
  CHECK(!received({{0}, 0, 5}, encoding::int8, 20));
  CHECK(!received({{4096}, 0, 5}, encoding::int8, 24));
  // The refused pieces hold more floats than one message can carry.
  CHECK(received({{0}, 0, wire::body_bytes_max / 4}, encoding::topk, 24));
  CHECK(!received({{0}, 0, wire::body_bytes_max / 4}, encoding::topk, 24, 2));
  CHECK(!received({{0}, 0, elements_max}, encoding::topk, 24));
  auto asked = pull_of({{{0}, 0, 1}});
  for (const auto how : {encoding::onebit, encoding::topk, encoding::randomk}) {
    asked.what.pull->packed_as = how; // A server keeps no residuals.
    CHECK(!decode_frame(flatten(wire::encode(asked))));
  }
}

TEST_CASE("an entry with packed pieces is refused: servers pass on floats") {
  auto push = std::make_shared<push_request>();
  push->packed.push_back({{{0}, 0, 5}, encoding::int8, 0, nullptr});
  const message sent = replica_message{{}, {}, entry_message{{}, {{push}, {}}}};
  CHECK(contains(refused(decode_frame(flatten(wire::encode(sent)))).text, "packed pieces"));
}

TEST_CASE("slabs that no table has are refused before there is memory for them") {
  // These words of a slab are unique in the message: the number of its keys, and the floats of a
  // row.
  constexpr std::uint64_t keys = 0x333, floats = 0x77;
  random_source random{4};
  const slab_image sent{
    {},     0, 0, keys, random_keys(random, keys), floats, random_floats(random, keys * floats),
    nullptr};
  const auto bytes =
    flatten(wire::encode(replica_message{{}, {}, copy_part{{}, 0, 0, 0, {{}, 0, {}, {}, {sent}}}}));
  REQUIRE(decode_frame(bytes));
  for (const auto count : {keys + 1, elements_max, elements_max + 1, ~std::uint64_t{0}}) {
    CAPTURE(count);
    CHECK(refused(decode_frame(with_word(bytes, keys, count))).code == errc::malformed);
    CHECK(refused(decode_frame(with_word(bytes, floats, count))).code == errc::malformed);
  }
}

TEST_CASE("ranges that no table can have are refused") {
  auto received = [](range where) { return decode_frame(flatten(wire::encode(pull_of({where})))); };
  CHECK(received({{4095}, elements_max - 1, 1}));
  CHECK(received({{0}, 0, wire::body_bytes_max / 4}));
  CHECK(!received({{0}, 0, wire::body_bytes_max / 4 + 1})); // No reply could hold it.
  CHECK(!received({{4096}, 0, 1}));
  CHECK(!received({{0}, elements_max, 1}));
  CHECK(!received({{0}, 1, ~std::uint64_t{0}}));
  CHECK(!received({{0}, ~std::uint64_t{0}, 1}));
}

TEST_CASE("enumerators that do not exist are refused") {
  auto of_role = [](unsigned x) {
    return hello{wire::protocol_version, 0, 0, {static_cast<role>(x), 0, {}}};
  };
  constexpr auto last = static_cast<unsigned>(role_max);
  CHECK(decode_frame(flatten(wire::encode(of_role(last)))));
  CHECK(contains(refused(decode_frame(flatten(wire::encode(of_role(last + 1))))).text,
                 "role: " + std::to_string(last + 1)));

  auto of_code = [](unsigned x) { return failure_message{0, {static_cast<errc>(x), ""}}; };
  CHECK(decode_frame(flatten(wire::encode(of_code(47)))));
  for (unsigned code : {0, 6, 19, 24, 39, 48, 255})
    CHECK(!decode_frame(flatten(wire::encode(of_code(code)))));

  job_status body;
  body.phase = static_cast<job_phase>(5);
  CHECK(!decode_frame(flatten(wire::encode(desired_state{.to = {}, .failed = {}, .body = body}))));
}

TEST_CASE("lists that are longer than any honest one are refused") {
  const auto pull = pull_of(std::vector<range>((1 << 18) + 1));
  CHECK(contains(refused(decode_frame(flatten(wire::encode(pull)))).text, "too many ranges"));

  auto push = push_of({});
  push.what.push->tables.resize(4097);
  CHECK(contains(refused(decode_frame(flatten(wire::encode(push)))).text, "too many tables"));

  desired_worker body;
  body.view.shard_of.resize(4097);
  CHECK(contains(refused(decode_frame(flatten(
                           wire::encode(desired_state{.to = {}, .failed = {}, .body = body}))))
                   .text,
                 "too many partitions"));
}

TEST_CASE("values of replicas and functions beyond their limits are refused") {
  hello told{.version = wire::protocol_version, .from = {}, .probes = {}};
  told.probes.resize(functions_max);
  CHECK(decode_frame(flatten(wire::encode(told))));
  told.probes.resize(functions_max + 1);
  CHECK(contains(refused(decode_frame(flatten(wire::encode(told)))).text, "too many probes"));
  for (auto& each : told.probes)
    each.function = std::string(name_length_max, 'x');
  CHECK(flatten(wire::encode(told)).size() <= wire::hello_bytes_max);

  server_status body;
  body.chains.resize(1);
  body.chains.front().checksums.resize(checksums_max + 1);
  CHECK(contains(
    refused(decode_frame(flatten(wire::encode(status_message{.from = {}, .body = body})))).text,
    "too many checksums"));
}

TEST_CASE("a list of very many empty elements costs nothing") {
  const auto bytes = flatten(wire::encode(pull_of({{{1}, 2, 3}})));
  // The list's tag says one element of three words. It is changed to 2^29 - 1 elements of no words.
  const std::uint64_t tag = 0x0000000300000004;
  const std::uint64_t many = 0x000000007ffffffc;
  CHECK(refused(decode_frame(with_word(bytes, tag, many))).code == errc::malformed);
}

TEST_CASE("a batch set with batches that no job has is refused") {
  auto received = [](batch_set applied) {
    server_status body;
    body.chains.emplace_back().applied = std::move(applied);
    return decode_frame(flatten(wire::encode(status_message{.from = {}, .body = body})));
  };
  CHECK(received(batch_set{{batches_max}}));
  CHECK(!received(batch_set{{batches_max + 1}}));
  CHECK(!received(batch_set{{batches_max - 64}, {1, 1}}));
}

TEST_CASE("a lease that no job has is refused") {
  auto received = [](const lease& what) {
    desired_worker body;
    body.leases = {what};
    return decode_frame(flatten(wire::encode(desired_state{.to = {}, .failed = {}, .body = body})));
  };
  CHECK(received({1, {batches_max}, 1 << 16, 1}));
  for (const lease& bad :
       {lease{1, {0}, 1, 0}, lease{1, {0}, (1 << 16) + 1, 1}, lease{1, {batches_max + 1}, 1, 1}}) {
    const auto why = refused(received(bad));
    CHECK(why.code == errc::malformed);
    CHECK(contains(why.text, "a lease that no job has"));
  }
}

TEST_CASE("a desired state brings a usable job or none") {
  random_source random{3};
  auto body = random_desired_server(random);
  body.job = random_job(random);
  CHECK(decode_frame(flatten(wire::encode(desired_state{.to = {}, .failed = {}, .body = body}))));
  body.job.partitions = 0;
  const auto why = refused(
    decode_frame(flatten(wire::encode(desired_state{.to = {}, .failed = {}, .body = body}))));
  CHECK(contains(why.text, "partitions must be"));
}

} // namespace troupe::test::wire_test
