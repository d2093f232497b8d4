// OpenSSL's objects with owners, its errors as text, and what Troupe reads from a certificate. For
// the .cpp files that deal with TLS; their headers do without it.
#pragma once

#include "actors/transport/streams/role_names.hpp"
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

/// Why the last call of this thread failed, in OpenSSL's words. Forgets it: errors are kept for
/// each thread, and would else be taken for those of the next connection.
std::string take_openssl_error();

/// Where a certificate says for which role it is: among its alternative names, as a URI. Those are
/// typed, may be several, and every authority can issue and show them; an organisational unit is
/// free text that others use for departments, and a private extension is opaque to other tools.
std::string role_uri(role which);
std::vector<role> roles_of(const X509& certificate);

/// The IP addresses among its alternative names.
std::vector<std::string> addresses_of(const X509& certificate);

/// "is for 10.0.0.1, 10.0.0.2, not for 10.0.0.3".
std::string elsewhere_text(const std::vector<std::string>& addresses, const std::string& other);

/// "2027-01-31 12:00 UTC".
std::string date_text(const ASN1_TIME& when);

/// What a failed verification found, without its subject: "has expired on 2027-01-31 12:00 UTC".
/// `certificate`: the one that it is about.
std::string verdict_text(int verdict, const X509* certificate);

} // namespace troupe::detail
