#include "actors/transport/streams/tls_context.hpp"

#include "actors/transport/streams/openssl.hpp"
#include "actors/transport/streams/tls_stream.hpp"

#include <openssl/err.h>
#include <openssl/x509err.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <new>
#include <system_error>

namespace troupe {

namespace {

using detail::no_passphrase;
using detail::take_openssl_error;
using verification_ptr = std::unique_ptr<X509_STORE_CTX, detail::freed_by<X509_STORE_CTX_free>>;

result<void> check_readable(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file{path};
  const bool is_file = file && file.peek() != std::ifstream::traits_type::eof();
  if (is_file)
    return {};
  const int problem = errno;
  std::error_code none; // The path may be too long to ask about.
  const std::string why = std::filesystem::is_directory(path, none) ? "it is a directory"
                          : file.is_open()                          ? "it is empty"
                                           : std::system_category().message(problem);
  return {errc::io_failed, "cannot read " + path.string() + ": " + why};
}

failure wrong_kind(const std::filesystem::path& path, const std::string& wanted) {
  return {errc::malformed, path.string() + " holds no " + wanted + ": " + take_openssl_error()};
}

result<void> load_files(SSL_CTX* context, const tls_files& files) {
  for (const auto& path : {files.authority, files.certificate, files.key})
    if (auto readable = check_readable(path); !readable)
      return readable;
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context, files.authority.c_str()) != 1)
    return wrong_kind(files.authority, "certificate");
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
    return wrong_kind(files.certificate, "certificate");
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1
      && SSL_CTX_check_private_key(context) == 1)
    return {};
  const auto error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) == ERR_LIB_X509
      && (ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH
          || ERR_GET_REASON(error) == X509_R_KEY_TYPE_MISMATCH)) {
    ERR_clear_error();
    return {errc::invalid_argument,
            files.key.string() + " is not the key of " + files.certificate.string()};
  }
  return wrong_kind(files.key, "private key without a passphrase");
}

/// Checks this process's certificate as a peer will.
result<void> check_certificate(SSL_CTX* context, const tls_files& files, role who) {
  X509* const own = SSL_CTX_get0_certificate(context);
  STACK_OF(X509)* between = nullptr;
  SSL_CTX_get0_chain_certs(context, &between);
  const verification_ptr check{X509_STORE_CTX_new()};
  if (check == nullptr
      || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), own, between) != 1
      || X509_STORE_CTX_set_default(check.get(), "ssl_client") != 1)
    throw std::bad_alloc{};
  const bool valid = X509_verify_cert(check.get()) == 1;
  (void)take_openssl_error();
  if (!valid) {
    const int verdict = X509_STORE_CTX_get_error(check.get());
    const auto* const about = X509_STORE_CTX_get_current_cert(check.get());
    const auto& path = about == nullptr || about == own ? files.certificate : files.authority;
    return {errc::invalid_argument, path.string() + " " + detail::verdict_text(verdict, about)};
  }
  const auto roles = detail::roles_of(*own);
  if (std::find(roles.begin(), roles.end(), who) == roles.end())
    return {errc::invalid_argument, files.certificate.string() + " is a certificate for "
                                      + names_of(roles) + ", not for "
                                      + std::string{traits_of(who).name}};
  return {};
}

} // namespace

tls_files tls_files_in(const std::filesystem::path& directory, role who) {
  const std::string name{traits_of(who).name};
  return {directory / "ca.pem", directory / (name + ".pem"), directory / (name + ".key")};
}

tls_context::tls_context(tls_files files)
    : files_(std::move(files)), context_(SSL_CTX_new(TLS_method())),
      method_(detail::tls_stream::make_method()) {
  if (context_ == nullptr || method_ == nullptr)
    throw std::bad_alloc{};
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  // AES-128 first: safe for far longer than a job lasts, and faster than AES-256.
  SSL_CTX_set_ciphersuites(
    context_, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_options(context_, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     detail::tls_stream::verify);
  // Idle links hold no buffers; busy ones read several records with one system call.
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context_, 1);
}

tls_context::~tls_context() {
  SSL_CTX_free(context_);
  BIO_meth_free(method_);
}

result<std::shared_ptr<const tls_context>> tls_context::load(const tls_files& files, role who) {
  const std::shared_ptr<tls_context> made{new tls_context{files}};
  if (auto loaded = load_files(made->context_, files); !loaded)
    return loaded.error();
  if (auto valid = check_certificate(made->context_, files, who); !valid)
    return valid.error();
  return std::shared_ptr<const tls_context>{made};
}

result<void> tls_context::check_address(const std::string& address) const {
  const auto known = detail::addresses_of(*SSL_CTX_get0_certificate(context_));
  if (known.empty() || std::find(known.begin(), known.end(), address) != known.end())
    return {};
  return {errc::invalid_argument,
          files_.certificate.string() + " " + detail::elsewhere_text(known, address)};
}

} // namespace troupe
