#include "kernels/devices/device_group.hpp"

#include "kernels/devices/emulated_platform.hpp"
#include "kernels/devices/shared_library.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/kernels/nccl_stand_in.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::test::device_group_test {

namespace {

constexpr std::size_t count = 4000;
constexpr std::size_t bytes = count * sizeof(float);

/// Four emulated devices; on device i each value is 10^i.
struct group_bench {
  explicit group_bench(device_sum_options options = {}, std::uint64_t seed = 1)
      : machine({.devices = 4, .seed = seed}), workers(machine.open()) {
    options.tell = [this](const std::string& line) { said.push_back(line); };
    group.emplace(
      [this]() -> result<std::unique_ptr<device_platform>> {
        ++opened;
        return std::unique_ptr<device_platform>{machine.open()};
      },
      options);
    float value = 1;
    for (std::uint32_t device = 0; device < 4; ++device, value *= 10) {
      bench_device at{*workers, device};
      there.push_back(at.upload(std::vector<float>(count, value)));
      shares.push_back({device, there.back().span(), factor});
    }
    before = machine.copied();
  }

  result<void> add_up() { return group->add_up(shares, room); }
  bool found_is(float value) const {
    return std::ranges::all_of(found, [=](float x) { return x == value; });
  }

  emulated_machine machine;
  std::unique_ptr<emulated_platform> workers;
  std::vector<std::string> said;
  int opened = 0;
  std::optional<device_group> group;
  std::vector<device_memory<float>> there;
  const std::vector<float> factor{1.0f};
  std::vector<device_share> shares;
  copied_bytes before;
  std::vector<float> found = std::vector<float>(count);
  const std::vector<std::span<float>> room{found};
};

} // namespace

TEST_CASE("device group: a sum of four devices comes to the host once") {
  group_bench with;
  must(with.add_up());
  CHECK(with.found_is(1111));
  const auto after = with.machine.copied();
  CHECK(after.from_devices - with.before.from_devices == bytes);
  CHECK(after.to_devices == with.before.to_devices);
  CHECK(after.between_devices == 3 * bytes); // Each value of three devices moves once.
  must(with.add_up());
  CHECK(with.opened == 1);
}

TEST_CASE("device group: its streams are in order whichever of them is slow") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    group_bench with{{}, seed};
    for (int round = 0; round < 2; ++round) {
      must(with.add_up());
      REQUIRE(with.found_is(1111));
    }
  }
}

TEST_CASE("device group: where a device is lost the others can be had, and then add up") {
  for (std::uint32_t lost = 0; lost < 4; ++lost) {
    CAPTURE(lost);
    group_bench with;
    must(with.add_up());
    with.workers->lose(lost);
    const auto failed = with.add_up();
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == errc::device_failed);
    CHECK(with.said.back()
          == "devices do not add up gradients, so these go one by one: device "
               + std::to_string(lost) + " is lost");
    float left = 0;
    for (std::uint32_t device = 0; device < 4; ++device) {
      const auto there = with.group->fetch(device, with.there[device].span(), with.room);
      CHECK(static_cast<bool>(there) == (device != lost));
      left += there ? with.found.front() : 0.0f;
    }
    CHECK(with.said.back()
          == "gradients on device " + std::to_string(lost)
               + " cannot be had, so they are computed again: device " + std::to_string(lost)
               + " is lost");
    const auto lines = with.said.size(); // The loss is reported once.
    CHECK_FALSE(with.group->fetch(lost, with.there[lost].span(), with.room));
    CHECK(with.said.size() == lines);
    with.shares.erase(with.shares.begin() + lost);
    must(with.add_up());
    CHECK(with.found_is(left));
    CHECK(with.said.back() == "devices add up gradients again");
    CHECK(with.opened == 4); // Each of the three errors reopens it.
  }
}

TEST_CASE("device group: one that cannot be opened says why, and is asked again") {
  int asked = 0;
  device_group group{[&]() -> result<std::unique_ptr<device_platform>> {
    ++asked;
    return {errc::device_failed, "no CUDA device here"};
  }};
  std::vector<float> out(1);
  const std::vector<std::span<float>> room{out};
  for (int i = 1; i <= 2; ++i) {
    const auto failed = group.fetch(0, out, room);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().text == "no CUDA device here");
    CHECK(asked == i);
  }
}

TEST_CASE("device group: NCCL adds up where it is, and a schedule where it fails") {
  const auto library = must(shared_library::open({TROUPE_NCCL_STAND_IN}));
  nccl_script* (*find)() = nullptr;
  must(library.bind(find, "stand_in_script"));
  *find() = {};
  {
    group_bench with{{.nccl = [] { return nccl_api::load(TROUPE_NCCL_STAND_IN); }}};
    must(with.add_up());
    CHECK(with.found_is(1111));
    CHECK(find()->living == 4);
    CHECK(with.machine.copied().between_devices == 0); // NCCL moved the bytes.
    find()->async_failure = 2;
    must(with.add_up());
    CHECK(with.found_is(1111));
    CHECK(with.machine.copied().between_devices == 3 * bytes);
    CHECK(with.said.front()
          == "devices add up gradients without NCCL: NCCL failed: remote error (while devices add "
             "up)");
    CHECK(find()->living == 0);
  }
  *find() = {};
}

TEST_CASE("device group: a sum that NCCL made without a lost device is not taken") {
  const auto library = must(shared_library::open({TROUPE_NCCL_STAND_IN}));
  nccl_script* (*find)() = nullptr;
  must(library.bind(find, "stand_in_script"));
  *find() = {};
  static emulated_platform* has_device = nullptr; // Null once device 1 is lost.
  static const nccl_api original = must(nccl_api::load(TROUPE_NCCL_STAND_IN));
  auto api = original;
  api.group_start = [] {
    if (has_device != nullptr)
      std::exchange(has_device, nullptr)->lose(1); // Its share is already in place.
    return original.group_start();
  };
  {
    group_bench with{{.nccl = [&] { return result{api}; }}};
    has_device = with.workers.get();
    find()->async_failure = 1;
    CHECK_FALSE(with.add_up());
    CHECK(with.said.front()
          == "devices add up gradients without NCCL: a device was lost while NCCL added up");
    find()->async_failure = -1;
    with.shares.erase(with.shares.begin() + 1);
    must(with.add_up());
    CHECK(with.found_is(1101));
  }
  *find() = {};
}

} // namespace troupe::test::device_group_test
