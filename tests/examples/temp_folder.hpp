// Gives a test a folder for its files, and finds the public data sets.
#pragma once

#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace async_sgd {

/// A folder that is removed with all its files when this object is destroyed.
class temp_folder {
public:
  temp_folder() {
    std::string form = (std::filesystem::temp_directory_path() / "troupe_XXXXXX").string();
    path_ = mkdtemp(form.data());
  }
  ~temp_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;

  const std::string& path() const { return path_; }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::string write_gz(const std::string& name, const std::string& bytes) const {
    std::string path = path_ + "/" + name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

private:
  std::string path_;
};

/// Returns the folder of the public data sets; empty if there is none.
inline std::string public_data() {
  const char* given = std::getenv("TROUPE_DATA");
#ifdef TROUPE_SOURCE_DIR
  const std::string path = given ? given : TROUPE_SOURCE_DIR "/../shared/data";
#else
  const std::string path = given ? given : "../shared/data";
#endif
  return std::filesystem::exists(path + "/mnist") ? path : "";
}

} // namespace async_sgd
