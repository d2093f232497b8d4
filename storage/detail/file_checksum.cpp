#include "storage/detail/file_checksum.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"

namespace troupe::storage::detail {

namespace {

constexpr const char* checksum_name = "troupe_crc32c";

class generator : public rocksdb::FileChecksumGenerator {
public:
  void Update(const char* data, std::size_t size) override {
    sum_ = crc32c(bytes_of({data, size}), sum_);
  }
  void Finalize() override { kept_ = byte_writer{}.little(sum_).take(); }
  std::string GetChecksum() const override { return kept_; }
  const char* Name() const override { return checksum_name; }

private:
  std::uint32_t sum_ = 0;
  std::string kept_;
};

class generator_factory : public rocksdb::FileChecksumGenFactory {
public:
  std::unique_ptr<rocksdb::FileChecksumGenerator>
  CreateFileChecksumGenerator(const rocksdb::FileChecksumGenContext&) override {
    return std::make_unique<generator>();
  }
  const char* Name() const override { return checksum_name; }
};

} // namespace

std::shared_ptr<rocksdb::FileChecksumGenFactory> make_file_checksums() {
  return std::make_shared<generator_factory>();
}

std::uint32_t file_checksum_value(const std::string& kept) {
  return byte_reader{kept}.little<std::uint32_t>();
}

} // namespace troupe::storage::detail
