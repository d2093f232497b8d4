// Gives fuzz targets a mutator that begins with valid inputs, or a main function. The latter is for
// compilers without libFuzzer (-DTROUPE_FUZZ_REPLAY): it runs the target once for each file on the
// command line.
#pragma once

#include "tests/serialization/random_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#ifndef TROUPE_FUZZ_REPLAY

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace troupe::test {

/// Does the work of LLVMFuzzerCustomMutator: replaces one input in 16, and every input below 16
/// bytes, by `make(random)`. libFuzzer changes the others.
template <class Make>
std::size_t mutate_or_make(std::uint8_t* data, std::size_t size, std::size_t max_size,
                           unsigned seed, Make&& make) {
  random_source random{seed};
  if (size >= 16 && random.below(16) != 0)
    return LLVMFuzzerMutate(data, size, max_size);
  const std::vector<std::byte> made = make(random);
  const auto length = std::min(made.size(), max_size);
  std::memcpy(data, made.data(), length);
  return length;
}

} // namespace troupe::test

#else

  #include <cstdio>
  #include <fstream>
  #include <iterator>
  #include <string>

int main(int count, char** names) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file{names[i], std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%d files\n", count - 1);
  return 0;
}

#endif
