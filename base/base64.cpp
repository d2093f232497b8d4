#include "base/base64.hpp"

#include <openssl/evp.h>

#include <utility>

namespace troupe::storage::detail {

namespace {

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

} // namespace

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0'); // EVP_EncodeBlock() ends it with a zero.
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), octets(bytes),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), octets(text),
                                   static_cast<int>(text.size()));
  if (size != static_cast<int>(bytes.size()))
    return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with(std::string(padding + 1, '=')); ++padding)
    bytes.pop_back();
  // EVP_DecodeBlock() also takes texts with spaces around them or with other spare bits.
  return to_base64(bytes) == text ? std::optional{std::move(bytes)} : std::nullopt;
}

} // namespace troupe::storage::detail
