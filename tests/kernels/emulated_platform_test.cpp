#include "kernels/devices/emulated_platform.hpp"
#include "kernels/devices/memory.hpp"
#include "tests/cuda/under_test.hpp"

namespace troupe::emulated_platform_test {

using test::must;

namespace {

/// Returns for how many of 100 seeds a copy on one stream reads the value that another stream
/// wrote. `wait`: the reading stream waits for the other one's event.
int times_found(bool wait) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto on = emulate_devices({.seed = seed});
    const auto first = must(make_stream(*on, 0)), second = must(make_stream(*on, 0));
    const auto ready = must(make_event(*on, 0));
    const auto from = must(make_pinned<int>(*on, 1)), to = must(make_pinned<int>(*on, 1));
    const auto there = must(make_memory<int>(*on, 0, 1));
    *from.data() = 42;
    on->copy(first.get(), there.data(), from.data(), sizeof(int));
    on->record(first.get(), ready.get());
    if (wait)
      on->wait(second.get(), ready.get());
    on->copy(second.get(), to.data(), there.data(), sizeof(int));
    must(on->synchronize(second.get()));
    found += *to.data() == 42;
  }
  return found;
}

} // namespace

TEST_CASE("emulated devices: who forgets to wait for an event is found out by some seed") {
  CHECK(times_found(true) == 100);
  CHECK(times_found(false) < 80);
  CHECK(times_found(false) > 20);
}

TEST_CASE("emulated devices: nothing is done before a stream is waited for") {
  const auto on = emulate_devices({});
  const auto stream = must(make_stream(*on, 0));
  const auto from = must(make_pinned<int>(*on, 1)), to = must(make_pinned<int>(*on, 1));
  *from.data() = 1;
  *to.data() = 0;
  on->copy(stream.get(), to.data(), from.data(), sizeof(int));
  CHECK(*to.data() == 0);
  must(on->synchronize(stream.get()));
  CHECK(*to.data() == 1);
}

TEST_CASE("emulated devices: an event is as it was recorded last") {
  const auto on = emulate_devices({});
  const auto stream = must(make_stream(*on, 0));
  const auto event = must(make_event(*on, 0));
  const auto from = must(make_pinned<int>(*on, 2)), to = must(make_pinned<int>(*on, 2));
  from.data()[0] = from.data()[1] = 1;
  to.data()[0] = to.data()[1] = 0;
  on->copy(stream.get(), to.data(), from.data(), sizeof(int));
  on->record(stream.get(), event.get());
  on->copy(stream.get(), to.data() + 1, from.data() + 1, sizeof(int));
  must(on->synchronize(event.get()));
  CHECK(to.data()[0] == 1);
  CHECK(to.data()[1] == 0);
}

TEST_CASE("emulated devices: memory that is not theirs is refused") {
  const auto on = emulate_devices({});
  const auto stream = must(make_stream(*on, 0));
  const auto there = must(make_memory<int>(*on, 0, 1));
  int pageable[2] = {1, 1};
  const auto is_refused = [&] {
    const auto said = on->synchronize(stream.get());
    REQUIRE_FALSE(said);
    CHECK(said.error().code == errc::device_failed);
    must(on->synchronize(stream.get())); // An error is reported once.
  };
  on->copy(stream.get(), there.data(), pageable, sizeof(int));
  is_refused();
  on->clear(stream.get(), pageable, sizeof(int));
  is_refused();
}

TEST_CASE("emulated devices: nothing is written beyond their memory") {
  const auto on = emulate_devices({});
  const auto stream = must(make_stream(*on, 0));
  const auto there = must(make_memory<int>(*on, 0, 4));
  const auto pinned = must(make_pinned<int>(*on, 8));
  on->clear(stream.get(), pinned.data(), 8 * sizeof(int));
  must(on->synchronize(stream.get()));
  on->clear(stream.get(), there.data() + 1, 4 * sizeof(int));
  CHECK_FALSE(on->synchronize(stream.get()));
  on->copy(stream.get(), there.data() + 1, pinned.data(), 4 * sizeof(int));
  CHECK_FALSE(on->synchronize(stream.get()));
  CHECK(pinned.data()[7] == 0);
}

TEST_CASE("emulated devices: memory runs out, and comes back") {
  const auto on = emulate_devices({.devices = 2, .memory_bytes = 1000});
  {
    const auto most = must(make_memory<char>(*on, 1, 900));
    const auto more = make_memory<char>(*on, 1, 101);
    REQUIRE_FALSE(more);
    CHECK(more.error().text
          == "device 1 is out of memory: 101 bytes asked for, 100 of 1000 are free");
    CHECK(make_memory<char>(*on, 0, 1000));
  }
  CHECK(make_memory<char>(*on, 1, 1000));
}

TEST_CASE("emulated devices: a lost device fails at everything, others do not") {
  const auto on = emulate_devices({.devices = 2});
  const auto stream = must(make_stream(*on, 1)), other = must(make_stream(*on, 0));
  on->lose(1);
  CHECK_FALSE(on->describe(1));
  CHECK_FALSE(on->allocate(1, 1));
  CHECK_FALSE(on->synchronize(stream.get()));
  CHECK(on->describe(0));
  CHECK(on->synchronize(other.get()));
  CHECK_FALSE(on->describe(2));
}

TEST_CASE("emulated devices: the platforms of a machine share its memory and its losses") {
  const emulated_machine machine{{.devices = 2, .memory_bytes = 1000}};
  const auto first = machine.open(), second = machine.open();
  const auto stream = must(make_stream(*first, 0)), other = must(make_stream(*second, 1));
  const auto here = must(make_pinned<int>(*first, 1)), back = must(make_pinned<int>(*second, 1));
  const auto there = must(make_memory<int>(*first, 0, 1)),
             copy = must(make_memory<int>(*second, 1, 1));
  *here.data() = 42;
  first->copy(stream.get(), there.data(), here.data(), sizeof(int));
  must(first->synchronize(stream.get()));
  second->copy(other.get(), copy.data(), there.data(), sizeof(int));
  second->copy(other.get(), back.data(), copy.data(), sizeof(int));
  must(second->synchronize(other.get()));
  CHECK(*back.data() == 42);
  CHECK(must(second->describe(0)).free_bytes == 1000 - sizeof(int));
  first->lose(1);
  CHECK_FALSE(second->describe(1));
  CHECK(second->describe(0));
}

TEST_CASE("emulated devices: copies are counted by where they come from and go to") {
  const emulated_machine machine{{.devices = 2}};
  const auto on = machine.open();
  const auto stream = must(make_stream(*on, 0));
  const auto here = must(make_pinned<char>(*on, 100));
  const auto a = must(make_memory<char>(*on, 0, 100)), b = must(make_memory<char>(*on, 1, 100));
  on->copy(stream.get(), a.data(), here.data(), 10);
  on->copy(stream.get(), here.data(), a.data() + 50, 20);
  on->copy(stream.get(), b.data(), a.data(), 30);
  on->copy(stream.get(), a.data(), a.data() + 50, 40); // A copy within one device is not counted.
  must(on->synchronize(stream.get()));
  const auto copied = machine.copied();
  CHECK(copied.to_devices == 10);
  CHECK(copied.from_devices == 20);
  CHECK(copied.between_devices == 30);
}

TEST_CASE("cuda: a machine without devices is told why") {
  const auto cuda = open_cuda();
  if (cuda)
    return;
  CHECK(cuda.error().code == errc::device_failed);
  CHECK(cuda.error().text.find('\n') == std::string::npos);
  MESSAGE(cuda.error().text);
}

} // namespace troupe::emulated_platform_test
