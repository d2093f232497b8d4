#include "actors/transport/streams/certificate_authority.hpp"

#include "actors/transport/streams/openssl.hpp"
#include "base/quote.hpp"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <optional>
#include <stdexcept>

namespace troupe {

namespace {

using detail::bio_ptr;
using detail::certificate_ptr;
using detail::no_passphrase;
using detail::private_key_ptr;
using detail::take_openssl_error;
using system_time = std::chrono::system_clock::time_point;

// Clocks of two hosts may differ by this much.
constexpr std::chrono::hours backdated{1};
constexpr int serial_bits = 127; // Positive in 16 bytes; random, so used ones need not be stored.

using number_ptr = std::unique_ptr<BIGNUM, detail::freed_by<BN_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, detail::freed_by<X509_EXTENSION_free>>;

/// Throws if a call failed that only fails without memory or random numbers.
void require(bool done) {
  if (!done)
    throw std::runtime_error{"cannot make a certificate: " + take_openssl_error()};
}

private_key_ptr make_key() {
  private_key_ptr made{EVP_EC_gen("P-256")};
  require(made != nullptr);
  return made;
}

template <class Write>
std::string pem(Write write) {
  const bio_ptr out{BIO_new(BIO_s_mem())};
  require(out != nullptr && write(out.get()) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  return pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string pem_of(EVP_PKEY* key) {
  return pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string random_serial(X509* certificate) {
  const number_ptr number{BN_new()};
  require(number != nullptr
          && BN_rand(number.get(), serial_bits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1
          && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr);
  const std::unique_ptr<char, detail::freed_by<[](char* text) { OPENSSL_free(text); }>> digits{
    BN_bn2hex(number.get())};
  require(digits != nullptr);
  return std::string{digits.get()}.substr(0, 8);
}

void set_name(X509_NAME* name, const std::string& text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.c_str());
  require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, bytes, -1, -1, 0) == 1);
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const extension_ptr made{X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str())};
  require(made != nullptr && X509_add_ext(certificate, made.get(), -1) == 1);
}

/// Makes a certificate without names, purposes and signature.
certificate_ptr begin_certificate(EVP_PKEY* key, system_time expires_at) {
  certificate_ptr made{X509_new()};
  require(made != nullptr && X509_set_version(made.get(), X509_VERSION_3) == 1
          && X509_set_pubkey(made.get(), key) == 1);
  const auto now = std::chrono::system_clock::now();
  const auto set = [](ASN1_TIME* place, system_time when) {
    require(ASN1_TIME_set(place, std::chrono::system_clock::to_time_t(when)) != nullptr);
  };
  set(X509_getm_notBefore(made.get()), std::min(now, expires_at) - backdated);
  set(X509_getm_notAfter(made.get()), expires_at);
  return made;
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1
         || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

/// Returns whether `host` has only letters, digits, '-' and '.', which an extension cannot misread.
bool is_name(const std::string& host) {
  return !host.empty() && host.size() <= 253
         && std::all_of(host.begin(), host.end(), [](unsigned char x) {
              return std::isalnum(x) != 0 || x == '-' || x == '.';
            });
}

std::string alternative_names(const certificate_order& order) {
  std::string names;
  const auto add = [&names](const std::string& kind, const std::string& value) {
    names += (names.empty() ? "" : ",") + kind + ":" + value;
  };
  for (const role each : order.roles)
    add("URI", detail::role_uri(each));
  for (const auto& host : order.hosts)
    add(is_address(host) ? "IP" : "DNS", host);
  return names;
}

bio_ptr reader_of(const std::string& text) {
  bio_ptr made{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
  require(made != nullptr);
  return made;
}

certificate_ptr read_certificate(const std::string& text) {
  return certificate_ptr{PEM_read_bio_X509(reader_of(text).get(), nullptr, no_passphrase, nullptr)};
}

/// Describes contents that form no authority; returns nullopt if they form one.
std::optional<std::string> fault_of(EVP_PKEY* key, X509* certificate) {
  if (key == nullptr && certificate == nullptr)
    return "neither a key nor a certificate";
  if (key == nullptr)
    return "a certificate but not its key";
  if (certificate == nullptr)
    return "a key but not its certificate: append the ca.pem that goes with it";
  if (X509_check_private_key(certificate, key) != 1)
    return "a key and a certificate that do not belong together";
  if (X509_check_ca(certificate) == 0)
    return "a certificate that is not one of an authority";
  return std::nullopt;
}

} // namespace

struct certificate_authority::parts {
  private_key_ptr key;
  certificate_ptr certificate;
};

certificate_authority::certificate_authority(std::unique_ptr<parts> owned)
    : parts_(std::move(owned)) {}

certificate_authority::~certificate_authority() = default;
certificate_authority::certificate_authority(certificate_authority&&) noexcept = default;

certificate_authority::certificate_authority(system_time expires_at)
    : parts_(std::make_unique<parts>()) {
  parts_->key = make_key();
  parts_->certificate = begin_certificate(parts_->key.get(), expires_at);
  auto* const made = parts_->certificate.get();
  // A unique name, so that a peer reports a certificate of another authority as just that.
  set_name(X509_get_subject_name(made), "Troupe authority " + random_serial(made));
  require(X509_set_issuer_name(made, X509_get_subject_name(made)) == 1);
  add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(made, made, NID_key_usage, "critical,keyCertSign");
  add_extension(made, made, NID_subject_key_identifier, "hash");
  require(X509_sign(made, parts_->key.get(), EVP_sha256()) != 0);
}

result<certificate_authority> certificate_authority::from_text(const std::string& text,
                                                               const std::string& name) {
  auto read = std::make_unique<parts>();
  const auto in = reader_of(text);
  read->key.reset(PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr));
  read->certificate = read_certificate(text);
  const auto fault = fault_of(read->key.get(), read->certificate.get());
  (void)take_openssl_error();
  if (fault)
    return {errc::malformed, name + " holds " + *fault};
  return certificate_authority{std::move(read)};
}

std::string certificate_authority::certificate() const { return pem_of(parts_->certificate.get()); }

std::string certificate_authority::text() const {
  return pem_of(parts_->key.get()) + certificate();
}

system_time certificate_authority::expires_at() const {
  std::tm time{};
  require(ASN1_TIME_to_tm(X509_get0_notAfter(parts_->certificate.get()), &time) == 1);
  return std::chrono::system_clock::from_time_t(timegm(&time));
}

result<certified_key> certificate_authority::issue(const certificate_order& order) const {
  for (const auto& host : order.hosts)
    if (!is_address(host) && !is_name(host))
      return {errc::invalid_argument, quote(host) + " is neither a name nor an address of a host"};
  // Certificates have no fractions of seconds.
  if (std::chrono::floor<std::chrono::seconds>(order.expires_at) > expires_at())
    return {errc::invalid_argument,
            "the authority itself expires before that, on "
              + detail::date_text(*X509_get0_notAfter(parts_->certificate.get()))};
  auto* const issuer = parts_->certificate.get();
  const private_key_ptr key = make_key();
  const certificate_ptr made = begin_certificate(key.get(), order.expires_at);
  random_serial(made.get());
  set_name(X509_get_subject_name(made.get()), "Troupe " + names_of(order.roles));
  require(X509_set_issuer_name(made.get(), X509_get_subject_name(issuer)) == 1);
  add_extension(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made.get(), issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(made.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(made.get(), issuer, NID_subject_key_identifier, "hash");
  add_extension(made.get(), issuer, NID_authority_key_identifier, "keyid:always");
  if (const auto names = alternative_names(order); !names.empty())
    add_extension(made.get(), issuer, NID_subject_alt_name, names);
  require(X509_sign(made.get(), parts_->key.get(), EVP_sha256()) != 0);
  return certified_key{pem_of(made.get()), pem_of(key.get())};
}

bool certificate_authority::has_signed(const std::string& certificate) const {
  const auto read = read_certificate(certificate);
  const bool signed_here = read != nullptr && X509_verify(read.get(), parts_->key.get()) == 1;
  (void)take_openssl_error();
  return signed_here;
}

} // namespace troupe
