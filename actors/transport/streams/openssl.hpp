// Wraps OpenSSL: owners of its objects, its errors as text, and the parts of a certificate that
// Troupe reads. Only .cpp files that deal with TLS include it; their headers do without.
#pragma once

#include "serialization/role.hpp"
#include "serialization/ids.hpp"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::detail {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* what) const {
    Free(what);
  }
};

using bio_ptr = std::unique_ptr<BIO, freed_by<BIO_free>>;
using private_key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;

/// Refuses to give a passphrase: a process of a job has no terminal. A pem_password_cb of OpenSSL.
int no_passphrase(char* buffer, int size, int writing, void* user_data);

/// Returns OpenSSL's text for the last failure on this thread, and clears the error. Errors are
/// kept for each thread, and would else be taken for errors of the next connection.
std::string take_openssl_error();

/// Returns the URI by which a certificate names a role among its alternative names. These are
/// typed, may be several, and every authority can issue and show them. An organisational unit is
/// free text that others use for departments. A private extension is opaque to other tools.
std::string role_uri(role which);
std::vector<role> roles_of(const X509& certificate);

/// Returns the IP addresses among its alternative names.
std::vector<std::string> addresses_of(const X509& certificate);

/// Returns a text such as "is for 10.0.0.1, 10.0.0.2, not for 10.0.0.3".
std::string elsewhere_text(const std::vector<std::string>& addresses, const std::string& other);

/// Returns a text such as "2027-01-31 12:00 UTC".
std::string date_text(const ASN1_TIME& when);

/// Returns the text of a failed verification, without its subject: "expired on 2027-01-31 12:00
/// UTC". `certificate`: the certificate that failed.
std::string verdict_text(int verdict, const X509* certificate);

} // namespace troupe::detail
