#include "actors/roles/links/key_cache.hpp"

#include "doctest/doctest.h"
#include "serialization/wire.hpp"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/random_messages.hpp"

#include <bit>
#include <set>

namespace key_cache_test {

using namespace troupe;
using detail::key_cache;
using detail::key_limits;
using detail::key_slots;

namespace {

row_keys list_of(std::vector<std::uint64_t> keys, std::uint32_t table = 1) {
  const auto memory = std::make_shared<std::vector<std::uint64_t>>(std::move(keys));
  return {{table}, 2, memory->size(), {memory, memory->data()}};
}

/// Returns `count` random keys of this seed.
row_keys list_of(std::uint64_t seed, std::size_t count, std::uint32_t table = 1) {
  test::random_source random{seed};
  std::set<std::uint64_t> keys;
  while (keys.size() < count)
    keys.insert(random.next());
  return list_of(std::vector<std::uint64_t>(keys.begin(), keys.end()), table);
}

request_message pull_of(std::vector<row_keys> lists, bool latest = false) {
  return {1, {{}, pull_request{{}, latest, {}, std::move(lists)}}};
}

request_message push_of(const row_keys& list) {
  push_request what;
  what.rows = {{list, nullptr}};
  what.rows[0].values = buffer_pool{}.floats(list.floats());
  std::fill_n(const_cast<float*>(what.rows[0].values.get()), list.floats(), 1.0f);
  return {1, {what, {}}};
}

key_use kept(std::uint32_t slot) { return {key_use::how::kept, slot}; }
key_use named(std::uint32_t slot) { return {key_use::how::named, slot}; }

/// Returns the request as it comes out of a link that names keys.
request_message arrived(const request_message& sent) {
  auto read = test::decode_frame(test::flatten(wire::encode(sent)));
  REQUIRE_MESSAGE(read, read.error().text);
  return std::get<request_list>(*std::move(read)).items.at(0);
}

/// Returns a hostile request; the keys of named lists are missing, as on a link.
request_message forged(request_message what, std::vector<key_use> keys,
                       std::vector<std::uint32_t> forgotten = {}) {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].way == key_use::how::named)
      what.what.pull->rows[i].keys = nullptr;
  what.keys = std::move(keys);
  what.forgotten = std::move(forgotten);
  return arrived(what);
}

void check_refused(key_slots& slots, request_message what) {
  const auto done = slots.complete(what);
  REQUIRE(!done);
  CHECK(done.error().code == errc::malformed);
}

void check_accepted(key_slots& slots, request_message what) {
  const auto done = slots.complete(what);
  CHECK_MESSAGE(done, done.error().text);
}

} // namespace

TEST_CASE("keys are brought once, and named in pushes and pulls from then on") {
  key_cache cache;
  key_slots slots;
  const auto list = list_of(1, 100);
  const auto same = list_of(1, 100); // The same keys in other memory.
  auto first = pull_of({list}), second = push_of(same), third = pull_of({same, list_of(2, 100)});
  for (auto* each : {&first, &second, &third})
    cache.shorten(*each);
  CHECK(first.keys == std::vector{kept(0)});
  CHECK(second.keys == std::vector{named(0)});
  CHECK(third.keys == std::vector{named(0), kept(1)});
  CHECK(wire::encode(second).size_bytes() + 700 < wire::encode(push_of(list)).size_bytes());

  for (auto* each : {&first, &second, &third}) {
    auto read = arrived(*each);
    check_accepted(slots, read);
  }
  auto read = arrived(second);
  REQUIRE(slots.complete(read));
  CHECK(test::same(message{read}, message{push_of(list)}));
}

TEST_CASE("what is not worth a slot, or could not be kept, is brought") {
  key_cache cache{{.lists_max = 4, .bytes_max = 800}};
  auto what = pull_of({list_of(1, detail::kept_keys_min - 1), list_of(2, 101),
                       list_of({9, 8, 7, 6, 5, 4, 3, 2, 1}), list_of({1, 2, 3, 4, 5, 6, 7, 7})});
  for (int i = 0; i < 2; ++i) {
    cache.shorten(what);
    CHECK(what.keys.empty());
    CHECK(what.forgotten.empty());
  }
}

TEST_CASE("a pull that may overtake others uses no slots") {
  key_cache cache;
  key_slots slots;
  auto first = pull_of({list_of(1, 20)}), latest = pull_of({list_of(1, 20)}, true);
  cache.shorten(first);
  cache.shorten(latest);
  CHECK(latest.keys.empty());
  check_accepted(slots, arrived(first));
  check_accepted(slots, arrived(latest));
  check_refused(slots, forged(pull_of({list_of(1, 20)}, true), {named(0)}));
  check_refused(slots, forged(pull_of({list_of(2, 20)}, true), {kept(1)}));
  check_refused(slots, forged(pull_of({list_of(2, 20)}, true), {}, {0}));
}

TEST_CASE("keys of one table are not taken for those of another one") {
  key_cache cache;
  auto what = pull_of({list_of(1, 20, 1), list_of(1, 20, 2)});
  cache.shorten(what);
  CHECK(what.keys == std::vector{kept(0), kept(1)});
}

TEST_CASE("two lists of one hash are told apart") {
  // The hash sums every fourth key, so a change of key 4 can undo a change of key 0.
  const auto mixed = [](std::uint64_t key) {
    return std::rotl(std::uint64_t{1} ^ key, 29) * 0x9e3779b97f4a7c15;
  };
  const std::uint64_t high = ~std::uint64_t{0} - 10;
  const std::vector<std::uint64_t> one{0, 11, 12, 13, 1000, high, high + 1, high + 2};
  auto other = one;
  other[0] = 5;
  other[4] = one[4] ^ mixed(0) ^ mixed(5);
  REQUIRE(first_unordered(other) == other.size());
  key_cache cache;
  key_slots slots;
  for (const auto& keys : {one, other, other, one}) {
    auto what = pull_of({list_of(keys)});
    cache.shorten(what);
    auto read = arrived(what);
    REQUIRE(slots.complete(read));
    CHECK(std::ranges::equal(read.what.pull->rows[0].span(), keys));
  }
  auto both = pull_of({list_of(other), list_of(one)});
  cache.shorten(both); // The first list is in use, so the second gives way.
  CHECK(both.keys == std::vector{kept(0), key_use{}});
  CHECK(both.forgotten == std::vector{0u});
}

TEST_CASE("the list that was not used for longest gives way") {
  key_cache cache{{.lists_max = 3, .bytes_max = 1 << 20}};
  for (const std::uint64_t seed : {1, 2, 3, 1}) {
    auto what = pull_of({list_of(seed, 10)});
    cache.shorten(what);
  }
  auto fourth = pull_of({list_of(4, 10)});
  cache.shorten(fourth);
  CHECK(fourth.forgotten == std::vector{1u});
  CHECK(fourth.keys == std::vector{kept(1)});
  auto others = pull_of({list_of(1, 10), list_of(3, 10), list_of(4, 10), list_of(2, 10)});
  cache.shorten(others);
  CHECK(others.keys == std::vector{named(0), named(2), named(1), key_use{}}); // All are in use.
}

TEST_CASE("key cache and key slots agree, whatever is asked for") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    test::random_source random{seed};
    const key_limits limits{.lists_max = static_cast<std::uint32_t>(1 + random.below(12)),
                            .bytes_max = 200 + random.below(4000)};
    key_cache cache{limits};
    key_slots slots{limits};
    std::size_t names = 0;
    for (int i = 0; i < 300; ++i) {
      const auto some_list = [&] {
        const std::uint64_t which = random.below(random.chance() ? 6 : 40);
        return list_of(which, 1 + which * 7 % 90, 1 + which % 2);
      };
      request_message whole = pull_of(random.several(some_list), random.below(8) == 0);
      if (random.chance())
        whole.what.push = push_of(some_list()).what.push;
      auto sent = whole;
      cache.shorten(sent);
      for (const key_use& x : sent.keys)
        names += x.way == key_use::how::named ? 1 : 0;
      auto read = arrived(sent);
      const auto done = slots.complete(read);
      REQUIRE_MESSAGE(done, done.error().text);
      REQUIRE(test::same(message{read}, message{whole}));
    }
    CHECK(names > 0);
  }
}

TEST_CASE("a new link begins with an empty key cache and empty key slots") {
  key_cache cache;
  auto first = pull_of({list_of(1, 50)}), again = pull_of({list_of(1, 50)});
  cache.shorten(first);
  cache = key_cache{};
  cache.shorten(again);
  CHECK(again.keys == std::vector{kept(0)});
  key_slots slots;
  check_accepted(slots, arrived(again));
}

TEST_CASE("key slots believe nothing") {
  const auto list = list_of(1, 10);
  const auto filled = [&] {
    key_slots slots{{.lists_max = 4, .bytes_max = 200}};
    check_accepted(slots, forged(pull_of({list}), {kept(3)}));
    return slots;
  };
  auto slots = filled();
  check_accepted(slots, forged(pull_of({list}), {named(3)}));
  check_refused(slots, forged(pull_of({list}), {named(2)}));
  check_refused(slots, forged(pull_of({list}), {named(4)}));
  check_refused(slots, forged(pull_of({list}), {named((1u << 30) - 1)}));
  check_refused(slots, forged(pull_of({list_of(1, 10, 2)}), {named(3)}));
  check_refused(slots, forged(pull_of({list_of(1, 9)}), {named(3)}));
  check_refused(slots, forged(pull_of({list_of(1, 11)}), {named(3)}));
  auto wide = list;
  wide.width = 3;
  check_refused(slots, forged(pull_of({wide}), {named(3)}));
  check_refused(slots, forged(pull_of({list}), {kept(4)}));
  check_refused(slots, forged(pull_of({list}), {kept(3)})); // Not forgotten before.
  check_refused(slots, forged(pull_of({list_of({})}), {kept(0)}));
  check_refused(slots, forged(pull_of({list_of({1, 3, 2})}), {kept(0)}));
  check_refused(slots, forged(pull_of({list_of({1, 1})}), {kept(0)}));
  check_refused(slots, forged(pull_of({list_of({1, 1})}), {named(0)})); // Nor was it kept.
  check_refused(slots, forged(pull_of({list_of(2, 16)}), {kept(0)}));   // 80 + 128 bytes.
  check_refused(slots, forged(pull_of({list}), {key_use{}}, {2}));
  check_refused(slots, forged(pull_of({list}), {named(3)}, {3}));
  slots = filled();
  check_refused(slots, forged(pull_of({list}), {key_use{}}, {3, 3}));
  slots = filled();
  check_accepted(slots, forged(pull_of({list_of(2, 15)}), {kept(0)}));
  check_refused(slots, forged(pull_of({list_of(3, 1)}), {kept(1)}));
  check_accepted(slots, forged(pull_of({list_of(3, 10)}), {kept(3)}, {3}));
}

TEST_CASE("a request cannot name more keys than it could bring") {
  key_slots slots;
  const std::size_t count = (std::size_t{16} << 20) / sizeof(std::uint64_t);
  std::vector<std::uint64_t> keys(count);
  for (std::size_t i = 0; i < count; ++i)
    keys[i] = i;
  const auto large = list_of(std::move(keys));
  check_accepted(slots, forged(pull_of({large}), {kept(0)}));
  const std::size_t lists = wire::body_bytes_max / (count * sizeof(std::uint64_t));
  for (const std::size_t many : {lists, lists + 1}) {
    auto what = forged(pull_of(std::vector(many, large)), std::vector(many, named(0)));
    CHECK(bool{slots.complete(what)} == (many == lists));
  }
}

} // namespace key_cache_test
