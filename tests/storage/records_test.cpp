#include "storage/detail/records.hpp"

#include "tests/storage/sample_checkpoint.hpp"

#include <string>

namespace troupe::storage::detail::records_test {

namespace {

std::string joined(const stored_value& what) {
  auto all = what.header;
  for (const auto part : what.rest)
    all += part;
  return all;
}

/// Calls `decode` with every bit of `value` flipped, every prefix, and a byte too many.
template <class Decode>
void check_refuses_all_but(const std::string& value, Decode decode) {
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    auto changed = value;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    REQUIRE(!decode(changed));
  }
  for (std::size_t size = 0; size < value.size(); ++size)
    REQUIRE(!decode(value.substr(0, size)));
  REQUIRE(!decode(value + '\0'));
  REQUIRE(decode(value));
}

} // namespace

TEST_CASE("keys sort by partition, table and block") {
  CHECK(block_key({1}, {0}, 0) < block_key({256}, {0}, 0));
  CHECK(block_key({1}, {1}, 255) < block_key({1}, {1}, 256));
  CHECK(block_key({1}, {1}, 1'000'000) < block_key({1}, {2}, 0));
  CHECK(block_key({3}, {9}, 9).starts_with(block_prefix({3})));
  CHECK(block_key({1}, {2}, 3) == std::string("b\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\3", 17));
}

TEST_CASE("a record is only what was written under its key") {
  std::mt19937_64 random{3};
  buffer_pool pool;
  block_image image{{4}, 7, 100, 50, 8, random_floats(8, random), 16, random_floats(16, random)};
  const auto key = block_key({2}, {4}, 7);
  const auto value = joined(encode_block(key, image));
  const auto back = decode_block(key, value, pool);
  REQUIRE(back);
  CHECK(same(*back, image));
  CHECK(!decode_block(block_key({2}, {4}, 8), value, pool));
  check_refuses_all_but(value, [&](const std::string& x) { return decode_block(key, x, pool); });

  partition_image partition{{2}, 99, {batch_set{batch_id{10}}, batch_set{}}, {}, {}};
  partition.applied[1].insert(batch_id{300});
  const auto meta = encode_meta(meta_key({2}), partition);
  const auto meta_back = decode_meta(meta_key({2}), meta);
  REQUIRE(meta_back);
  CHECK(meta_back->image.version == 99);
  CHECK(meta_back->image.applied == partition.applied);
  CHECK(meta_back->slabs == 0);
  check_refuses_all_but(meta, [&](const std::string& x) { return decode_meta(meta_key({2}), x); });

  partition.slabs.resize(3);
  const auto with_slabs = encode_meta(meta_key({2}), partition);
  CHECK(with_slabs.size() == meta.size() + 8);
  REQUIRE(decode_meta(meta_key({2}), with_slabs));
  CHECK(decode_meta(meta_key({2}), with_slabs)->slabs == 3);

  const cut_complete complete{7, {3}, 8, 20};
  const auto seal = encode_complete(complete_key(), complete);
  CHECK(decode_complete(complete_key(), seal) == complete);
  check_refuses_all_but(seal,
                        [&](const std::string& x) { return decode_complete(complete_key(), x); });
}

TEST_CASE("a record of rows is only what was written under its key") {
  std::mt19937_64 random{4};
  buffer_pool pool;
  for (const bool has_steps : {false, true}) {
    const auto image = sample_slab({4}, 7, 5, 3, has_steps, random);
    const auto key = slab_key({2}, {4}, 7);
    const auto value = joined(encode_slab(key, image));
    const auto back = decode_slab(key, value, pool);
    REQUIRE(back);
    CHECK(same(*back, image));
    CHECK(!decode_slab(slab_key({2}, {4}, 8), value, pool));
    check_refuses_all_but(value, [&](const std::string& x) { return decode_slab(key, x, pool); });
  }
  CHECK(slab_key({1}, {2}, 3) == std::string("r\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\3", 17));
}

} // namespace troupe::storage::detail::records_test
