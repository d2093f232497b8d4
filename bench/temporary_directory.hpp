// Makes a directory for this process and removes it in the end.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace troupe::bench {

class temporary_directory {
public:
  /// Throws std::system_error.
  explicit temporary_directory(const std::string& prefix) {
    std::string form = (std::filesystem::temp_directory_path() / (prefix + "_XXXXXX")).string();
    if (mkdtemp(form.data()) == nullptr)
      throw std::system_error{errno, std::system_category(), "mkdtemp"};
    path_ = form;
  }
  ~temporary_directory() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace troupe::bench
