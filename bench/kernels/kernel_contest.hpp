// The contestants of kernels_bench: each works on the same vectors, and says how many bytes of them
// it reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace troupe::bench {

/// Where the store's blocks begin: a vector that begins elsewhere than on a cache line is slower.
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

  std::size_t count; ///< Of each vector.
  /// v[0] and v[1] are what kernels work on in place, v[7] what is written alone, v[2] to v[6] what
  /// steps read and write. So no number grows beyond floats, whoever runs how often.
  std::vector<line_vector<float>> v;
  line_vector<std::uint8_t> bytes; ///< As many bytes as a vector has: for codecs.
  double result = 0;               ///< What reductions leave behind.
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

/// One kernel is one line in one of these.
void add_troupe(kernel_contest& contest, kernel_memory& m);
void add_codecs(kernel_contest& contest, kernel_memory& m);
void add_loops(kernel_contest& contest, kernel_memory& m);
/// Where they are installed.
void add_openblas(kernel_contest& contest, kernel_memory& m);
void add_eigen(kernel_contest& contest, kernel_memory& m);

} // namespace troupe::bench
