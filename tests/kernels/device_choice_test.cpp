#include "kernels/devices/device_choice.hpp"

#include "tests/cuda/under_test.hpp"

#include <string>

namespace troupe::device_choice_test {

namespace {

using places = std::vector<device_place>;

constexpr device_place cpu{device_kind::cpu, 0}, emulated{device_kind::emulated, 0};
constexpr device_place gpu(std::uint32_t device) { return {device_kind::cuda, device}; }

const result<std::uint32_t> none{errc::device_failed, "no CUDA driver here"};

places places_of(const std::string& text, const result<std::uint32_t>& cuda) {
  return test::must(test::must(device_choice::parse(text)).places(cuda));
}

std::string rejection(const std::string& text, const result<std::uint32_t>& cuda) {
  const auto choice = device_choice::parse(text);
  const auto found = choice ? choice->places(cuda) : choice.error();
  REQUIRE_FALSE(found);
  CHECK(found.error().text.find('\n') == std::string::npos);
  return found.error().text;
}

} // namespace

TEST_CASE("--device names places, which workers take in turn") {
  CHECK(places_of("cpu", none) == places{cpu});
  CHECK(places_of("emulated", none) == places{emulated});
  CHECK(places_of("cuda:0", 1u) == places{gpu(0)});
  CHECK(places_of("cuda:3,1", 4u) == places{gpu(3), gpu(1)});
  CHECK(places_of("cuda:all", 3u) == places{gpu(0), gpu(1), gpu(2)});
  CHECK(places_of("cuda:all+cpu", 2u) == places{gpu(0), gpu(1), cpu});
  CHECK(places_of("cuda:1+emulated+cpu+cpu", 2u) == places{gpu(1), emulated, cpu, cpu});
}

TEST_CASE("--device auto takes what there is") {
  CHECK(places_of("auto", 2u) == places{gpu(0), gpu(1)});
  CHECK(places_of("auto", none) == places{cpu});
  CHECK(places_of("auto+cpu", none) == places{cpu, cpu});
}

TEST_CASE("--device fails for what was asked for by name and is not there") {
  CHECK(rejection("cuda:7", 2u)
        == "--device cuda:7: there is no CUDA device 7; there are cuda:0 to cuda:1");
  CHECK(rejection("cuda:0,1", 1u)
        == "--device cuda:0,1: there is no CUDA device 1; the only one is cuda:0");
  CHECK(rejection("cuda:all", none)
        == "--device cuda:all: no CUDA driver here; use --device cpu, or auto, which takes any "
           "GPU");
  CHECK(rejection("cpu+cuda:0", none).starts_with("--device cpu+cuda:0: no CUDA driver here;"));
}

TEST_CASE("--device refuses what it does not know") {
  for (const char* text : {"", "gpu", "cuda", "CPU", "cpu+", "+cpu", "cpu,cpu"})
    CHECK(rejection(text, 1u).find("known: cpu, auto") != std::string::npos);
  for (const char* text :
       {"cuda:", "cuda:x", "cuda:all,0", "cuda:-1", "cuda:0,", "cuda:1024", "cuda:1 "})
    CHECK(rejection(text, 1u).find("is no number of a device") != std::string::npos);
}

TEST_CASE("--device tells whether anyone need look for CUDA") {
  CHECK_FALSE(test::must(device_choice::parse("cpu")).asks_for_cuda());
  CHECK_FALSE(test::must(device_choice::parse("cpu+emulated")).asks_for_cuda());
  CHECK(test::must(device_choice::parse("cpu+auto")).asks_for_cuda());
  CHECK(test::must(device_choice::parse("cuda:0")).asks_for_cuda());
  CHECK(test::must(device_choice::parse("cpu")).cpu_only());
  CHECK_FALSE(test::must(device_choice::parse("cpu+emulated")).cpu_only());
}

} // namespace troupe::device_choice_test
