#include "actors/transport/streams/openssl.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>

#include <cstdio>
#include <ctime>
#include <string_view>

namespace troupe::detail {

namespace {

using names_ptr = std::unique_ptr<GENERAL_NAMES, freed_by<GENERAL_NAMES_free>>;

/// Calls `visit(name)` for each alternative name of this type.
template <class Visit>
void for_each_name(const X509& certificate, int type, Visit visit) {
  const names_ptr names{static_cast<GENERAL_NAMES*>(
    X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const each = sk_GENERAL_NAME_value(names.get(), i);
    int found = 0;
    const void* const value = GENERAL_NAME_get0_value(each, &found);
    if (found == type)
      visit(*static_cast<const ASN1_STRING*>(value));
  }
}

std::string_view view_of(const ASN1_STRING& text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&text)),
          static_cast<std::size_t>(ASN1_STRING_length(&text))};
}

} // namespace

int no_passphrase(char*, int, int, void*) { return -1; }

std::string take_openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown error " + std::to_string(code) : reason;
}

std::string role_uri(role which) {
  return std::string{"urn:troupe:role:"}.append(traits_of(which).name);
}

std::vector<role> roles_of(const X509& certificate) {
  std::vector<role> roles;
  for_each_name(certificate, GEN_URI, [&roles](const ASN1_STRING& uri) {
    for (const auto& each : role_rows)
      if (view_of(uri) == role_uri(each.role))
        roles.push_back(each.role);
  });
  return roles;
}

std::vector<std::string> addresses_of(const X509& certificate) {
  std::vector<std::string> addresses;
  for_each_name(certificate, GEN_IPADD, [&addresses](const ASN1_STRING& bytes) {
    char text[INET6_ADDRSTRLEN] = "";
    const int family = view_of(bytes).size() == sizeof(in_addr) ? AF_INET : AF_INET6;
    const std::size_t size = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
    if (view_of(bytes).size() == size
        && inet_ntop(family, view_of(bytes).data(), text, sizeof text) != nullptr)
      addresses.emplace_back(text);
  });
  return addresses;
}

std::string elsewhere_text(const std::vector<std::string>& addresses, const std::string& other) {
  std::string text;
  for (const auto& each : addresses)
    text += (text.empty() ? "is for " : ", ") + each;
  return text + ", not for " + other;
}

std::string date_text(const ASN1_TIME& when) {
  std::tm time{};
  char text[32] = "an unknown date";
  if (ASN1_TIME_to_tm(&when, &time) == 1)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &time);
  return text;
}

std::string verdict_text(int verdict, const X509* certificate) {
  switch (verdict) {
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return "expired" + (certificate ? " on " + date_text(*X509_get0_notAfter(certificate)) : "");
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "is not valid"
           + (certificate ? " before " + date_text(*X509_get0_notBefore(certificate)) : " yet")
           + " (is the clock right?)";
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "is of another authority than ca.pem";
  default: return std::string{"is not valid: "} + X509_verify_cert_error_string(verdict);
  }
}

} // namespace troupe::detail
