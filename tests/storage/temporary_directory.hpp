// Makes a directory for one test and removes it at the end.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <unistd.h>

namespace troupe::storage {

class temporary_directory {
public:
  temporary_directory() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path()
            / ("troupe-storage-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

/// Returns every file and directory below `root` with its size; a directory has size 0.
inline std::map<std::string, std::uintmax_t> listing(const std::filesystem::path& root) {
  std::map<std::string, std::uintmax_t> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{root})
    files[std::filesystem::relative(entry.path(), root).string()] =
      entry.is_regular_file() ? entry.file_size() : 0;
  return files;
}

} // namespace troupe::storage
