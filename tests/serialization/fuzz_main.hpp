// A main function for compilers without libFuzzer: runs the target once for each file named on the
// command line. Compiled in with -DTROUPE_FUZZ_REPLAY.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#ifdef TROUPE_FUZZ_REPLAY
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
