#include "base/buffer.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace troupe::test::buffer_test {

namespace {

bool is_aligned(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 64 == 0; }

} // namespace

TEST_CASE("buffers are aligned, padded to 64 bytes and writable") {
  buffer_pool pool;
  for (std::size_t size : {0, 1, 63, 64, 65, 1000, 4096, 65'537, 1 << 20, 5'000'000}) {
    const auto buffer = pool.bytes(size);
    CHECK(is_aligned(buffer.get()));
    // A sanitizer would report a write past the end.
    std::memset(buffer.get(), 1, (size + 63) / 64 * 64);
  }
  const auto values = pool.floats(1000);
  CHECK(is_aligned(values.get()));
}

TEST_CASE("a returned buffer is used again") {
  buffer_pool pool;
  const auto* first = pool.floats(100'000).get();
  CHECK(pool.stats().idle_bytes >= 400'000);
  const auto second = pool.floats(100'000);
  CHECK(second.get() == first);
  CHECK(pool.stats().allocated == 1);
  CHECK(pool.stats().reused == 1);
  CHECK(pool.stats().idle_bytes == 0);
}

TEST_CASE("a buffer in use is not given out twice") {
  buffer_pool pool;
  const auto a = pool.bytes(1000);
  const auto b = pool.bytes(1000);
  CHECK(a != b);
}

TEST_CASE("at most the given number of bytes is kept") {
  buffer_pool pool{100'000};
  {
    std::vector<std::shared_ptr<std::byte>> many;
    for (int i = 0; i < 100; ++i)
      many.push_back(pool.bytes(10'000));
  }
  CHECK(pool.stats().idle_bytes <= 100'000);
  CHECK(pool.stats().idle_bytes > 80'000);
  buffer_pool none{0};
  none.bytes(64);
  CHECK(none.stats().idle_bytes == 0);
}

TEST_CASE("a buffer outlives its pool") {
  std::optional<buffer_pool> pool{std::in_place};
  const auto buffer = pool->floats(1000);
  pool->floats(1000);
  pool.reset();
  buffer.get()[999] = 1.0f;
  CHECK(buffer.get()[999] == 1.0f);
}

TEST_CASE("padding is at most a quarter of a large buffer") {
  for (std::size_t size = 1 << 16; size < 1 << 20; size += 12'345) {
    buffer_pool pool;
    pool.bytes(size);
    CHECK(pool.stats().idle_bytes >= size);
    CHECK(pool.stats().idle_bytes < size + size / 4 + 64);
  }
}

TEST_CASE("threads share a pool and each has its own memory") {
  buffer_pool pool;
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&pool, id] {
      for (int i = 0; i < 2000; ++i) {
        const auto size = static_cast<std::size_t>(100 + i % 50 * 100);
        const auto buffer = pool.bytes(size);
        std::memset(buffer.get(), id, size);
        for (std::size_t at = 0; at < size; at += 64)
          if (buffer.get()[at] != static_cast<std::byte>(id))
            throw 0; // Another thread wrote here: end the program.
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(pool.stats().allocated + pool.stats().reused == 8000);
}

} // namespace troupe::test::buffer_test
