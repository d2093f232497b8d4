#include "kernels/devices/nccl.hpp"

#include "kernels/devices/emulated_platform.hpp"
#include "kernels/devices/shared_library.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/kernels/nccl_stand_in.hpp"

#include <string>

namespace troupe::test::nccl_test {

namespace {

constexpr std::size_t count = 1000;

/// Three emulated devices, which hold the numbers 1, 10 and 100, and the stand-in.
struct nccl_bench {
  nccl_bench()
      : api(must(nccl_api::load(TROUPE_NCCL_STAND_IN))), on(emulate_devices({.devices = 3})) {
    const auto library = must(shared_library::open({TROUPE_NCCL_STAND_IN}));
    nccl_script* (*find)() = nullptr;
    must(library.bind(find, "stand_in_script"));
    script = find();
    *script = {};
    for (std::uint32_t device = 0; device < 3; ++device) {
      devices.emplace_back(*on, device);
      in.push_back(devices[device].upload(std::vector<float>(count, numbers[device])));
      out.push_back(devices[device].upload(std::vector<float>(count, -1.0f)));
      shares.push_back({in.back().span(), out.back().span()});
    }
  }

  /// Returns true if all devices of `whose` have that sum.
  bool has(const std::vector<std::uint32_t>& whose, float sum) {
    return std::ranges::all_of(whose, [&](std::uint32_t i) {
      return devices[i].download(out[i]) == std::vector<float>(count, sum);
    });
  }

  static constexpr float numbers[] = {1.0f, 10.0f, 100.0f};
  nccl_api api;
  std::unique_ptr<emulated_platform> on;
  nccl_script* script = nullptr;
  std::vector<bench_device> devices;
  std::vector<device_memory<float>> in, out;
  std::vector<nccl_group::share> shares;
};

const std::vector<std::uint32_t> all{0, 1, 2};

} // namespace

TEST_CASE("nccl: all devices get the sum") {
  nccl_bench with;
  {
    auto group = must(nccl_group::make(*with.on, with.api, all));
    must(group.all_reduce(with.shares));
    must(group.all_reduce(with.shares)); // Inputs are unchanged.
    CHECK(group.left() == all);
    CHECK(with.has(all, 111.0f));
  }
  CHECK(with.script->living == 0);
  CHECK(with.script->aborted == 0);
}

TEST_CASE("nccl: whichever call fails once, the communicator is made again and the sum is right") {
  // Call 1 makes the first communicator. Each sum is then a start, three reductions and an end.
  for (int call = 2; call <= 6; ++call) {
    CAPTURE(call);
    nccl_bench with;
    {
      auto group = must(nccl_group::make(*with.on, with.api, all));
      with.script->fail_call = call;
      must(group.all_reduce(with.shares));
      CHECK(group.left() == all);
      CHECK(with.has(all, 111.0f));
      CHECK(with.script->aborted == 3);
      CHECK(with.script->living == 3);
    }
    CHECK(with.script->living == 0);
  }
}

TEST_CASE("nccl: a lost device is left out, and the others have their sum") {
  for (std::uint32_t lost = 0; lost < 3; ++lost) {
    CAPTURE(lost);
    nccl_bench with;
    auto group = must(nccl_group::make(*with.on, with.api, all));
    with.on->lose(lost);
    with.script->async_failure = static_cast<int>(lost);
    must(group.all_reduce(with.shares));
    std::vector<std::uint32_t> left;
    for (const std::uint32_t i : all)
      if (i != lost)
        left.push_back(i);
    CHECK(group.left() == left);
    CHECK(with.has(left, 111.0f - nccl_bench::numbers[lost]));
    CHECK(with.script->living == 2);
    must(group.all_reduce(with.shares)); // The group goes on without `lost`.
    CHECK(with.script->aborted == 3);
  }
}

TEST_CASE("nccl: an error that stays is told, in one line") {
  nccl_bench with;
  auto group = must(nccl_group::make(*with.on, with.api, all));
  with.script->async_failure = 1; // The device still answers.
  const auto failed = group.all_reduce(with.shares);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text == "NCCL failed: remote error (while devices add up)");
  with.script->async_failure = -1;
  must(group.all_reduce(with.shares)); // Without the error the sum succeeds.
  CHECK(with.has(all, 111.0f));
}

TEST_CASE("nccl: who waits long looks seldom, and gives up when its patience ends") {
  // One look runs one queued operation. Without pauses all would be done in a few milliseconds.
  nccl_bench with;
  with.script->delay = 2000;
  auto group = must(nccl_group::make(*with.on, with.api, all, std::chrono::milliseconds{20}));
  const auto failed = group.all_reduce(with.shares);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text == "NCCL is not done after 20 ms");
  with.script->delay = 200;
  auto patient = must(nccl_group::make(*with.on, with.api, all));
  must(patient.all_reduce(with.shares));
  CHECK(with.has(all, 111.0f));
}

TEST_CASE("nccl: a group that cannot be made says why") {
  nccl_bench with;
  with.script->fail_call = 1;
  const auto made = nccl_group::make(*with.on, with.api, all);
  REQUIRE_FALSE(made);
  CHECK(made.error().text == "NCCL failed: told to fail (ncclCommInitAll)");
}

TEST_CASE("nccl: a machine without the library is told so") {
  const auto missing = nccl_api::load("/nowhere/libnccl.so.2");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::device_failed);
  CHECK(missing.error().text.starts_with("NCCL cannot be loaded: /nowhere/libnccl.so.2"));
  CHECK(missing.error().text.find('\n') == std::string::npos);
  const auto other = nccl_api::load("libz.so.1");
  REQUIRE_FALSE(other);
  CHECK(other.error().text == "libz.so.1 has no ncclCommInitAll: it is of another version");
}

} // namespace troupe::test::nccl_test
