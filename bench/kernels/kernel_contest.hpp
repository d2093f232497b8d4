// Defines the contestants of kernels_bench: each works on the same vectors, and states the bytes
// that it reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace troupe::bench {

/// Allocates on a cache line, as the store's blocks do: a vector that begins elsewhere is slower.
template <class T>
struct line_allocator {
  using value_type = T;
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete (memory, std::align_val_t{64}); }
  bool operator==(const line_allocator&) const = default;
};
template <class T>
using line_vector = std::vector<T, line_allocator<T>>;

/// Vectors of one length, all of finite positive numbers, so that each is also a state.
struct kernel_memory {
  static constexpr std::size_t vectors = 8;

  explicit kernel_memory(std::size_t floats);

  std::size_t count; ///< Floats of each vector.
  /// Kernels change v[0] and v[1] in place and only write v[7]; steps read and write v[2] to v[6].
  /// So no number grows beyond floats, however often a kernel runs.
  std::vector<line_vector<float>> v;
  line_vector<std::uint8_t> bytes; ///< As many bytes as a vector has: for codecs.
  double result = 0;               ///< Result of reductions.
};

class kernel_contest {
public:
  struct entry {
    std::string kernel, contestant;
    double bytes; ///< Read and written for each float of a vector.
    std::function<void()> run;
  };

  void add(std::string kernel, std::string contestant, double bytes, std::function<void()> run) {
    entries_.push_back({std::move(kernel), std::move(contestant), bytes, std::move(run)});
  }
  std::span<const entry> entries() const { return entries_; }

private:
  std::vector<entry> entries_;
};

/// Each of these adds kernels, one in a line.
void add_troupe(kernel_contest& contest, kernel_memory& m);
void add_functions(kernel_contest& contest, kernel_memory& m);
void add_codecs(kernel_contest& contest, kernel_memory& m);
void add_loops(kernel_contest& contest, kernel_memory& m);
/// Only if the library is installed.
void add_openblas(kernel_contest& contest, kernel_memory& m);
void add_eigen(kernel_contest& contest, kernel_memory& m);

} // namespace troupe::bench
