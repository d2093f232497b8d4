// Holds the notes of a rank's program in memory that the rank shares with the launcher.
#pragma once

#include "base/notes.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace troupe {

/// One process writes and another one reads. Lives in zeroed or constructed shared memory, without
/// pointers. A rank that starts again calls clear() first.
class rank_notes {
public:
  /// Writer: drops all notes.
  void clear();
  /// Writer: takes the notes of the process so far. A note keeps its index from call to call, as
  /// with program_notes::all().
  void write(const std::vector<program_note>& all);
  /// Reader: returns the notes so far; none if the writer calls clear() meanwhile.
  std::vector<program_note> read() const;

private:
  struct slot {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint32_t> bytes{0};
    std::atomic<bool> is_line{false};
    std::array<char, program_note_bytes_max> name{};
  };

  std::atomic<std::uint64_t> cleared_{0}; ///< Calls of clear().
  std::atomic<std::uint32_t> size_{0};
  std::array<slot, program_notes_max> slots_{};
};

} // namespace troupe
