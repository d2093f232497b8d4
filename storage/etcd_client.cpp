// Sends the requests of https://etcd.io/docs/v3.4/dev-guide/api_reference_v3/ as JSON. Keys and
// values are in base64, 64-bit numbers are strings, and values that are 0, false or empty are left
// out.
#include "storage/etcd_client.hpp"

#include "base/base64.hpp"
#include "base/quote.hpp"
#include "storage/detail/etcd_gateway.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace troupe::storage {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using json = nlohmann::json;

constexpr std::string_view scheme = "etcd://";

std::string bytes_in(const std::string& text) { return detail::to_base64(text); }

/// Reads the fields of an answer. A missing or wrong field makes the answer malformed.
class answer_reader {
public:
  std::int64_t number(const json& from, const char* name) {
    const auto found = from.find(name);
    if (found == from.end())
      return 0;
    if (found->is_number_integer())
      return found->get<std::int64_t>();
    std::int64_t value = 0;
    if (!found->is_string())
      return refuse<std::int64_t>();
    const auto& text = found->get_ref<const std::string&>();
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc{} && end == text.data() + text.size() ? value
                                                                      : refuse<std::int64_t>();
  }

  std::string bytes(const json& from, const char* name) {
    const auto found = from.find(name);
    if (found == from.end())
      return {};
    auto decoded =
      found->is_string() ? detail::from_base64(found->get_ref<const std::string&>()) : std::nullopt;
    return decoded ? *std::move(decoded) : refuse<std::string>();
  }

  /// Returns an object, which must be present.
  const json& object(const json& from, const char* name) {
    const auto found = from.find(name);
    if (found != from.end() && found->is_object())
      return *found;
    is_right_ = false;
    return nothing_;
  }

  /// Returns an array of objects; empty if it was left out.
  const json& list(const json& from, const char* name) {
    const auto found = from.find(name);
    if (found == from.end())
      return none_;
    if (found->is_array()
        && std::all_of(found->begin(), found->end(), [](const json& x) { return x.is_object(); }))
      return *found;
    is_right_ = false;
    return none_;
  }

  std::pair<std::string, etcd_value> key_value(const json& from) {
    return {bytes(from, "key"),
            {bytes(from, "value"), number(from, "create_revision"), number(from, "mod_revision"),
             number(from, "lease")}};
  }

  template <class T>
  result<T> give(T what) const {
    if (is_right_)
      return what;
    return {errc::malformed, "etcd gave an answer of another form than that of etcd v3"};
  }

private:
  template <class T>
  T refuse() {
    is_right_ = false;
    return {};
  }

  const json nothing_ = json::object();
  const json none_ = json::array();
  bool is_right_ = true;
};

/// Returns whether a failure is more informative: an endpoint that answers tells more than silence.
bool tells_more(const failure& one, const failure& other) {
  const auto rank = [](errc code) {
    return code == errc::not_ready ? 2 : code == errc::timed_out ? 1 : 0;
  };
  return rank(one.code) > rank(other.code);
}

} // namespace

result<etcd_address> parse_etcd_url(const std::string& text) {
  const failure wrong{errc::invalid_argument,
                      quote(text) + " is not etcd://HOST:PORT[,HOST:PORT...][/JOB]"};
  if (!text.starts_with(scheme))
    return wrong;
  auto hosts = std::string_view{text}.substr(scheme.size());
  etcd_address made;
  if (const auto slash = hosts.find('/'); slash != std::string_view::npos) {
    made.job = hosts.substr(slash + 1);
    hosts = hosts.substr(0, slash);
  }
  while (true) {
    const auto comma = hosts.find(',');
    const auto where = parse_endpoint(std::string{hosts.substr(0, comma)});
    if (!where || where->port == 0 || where->host.find_first_of("@?#") != std::string::npos)
      return wrong;
    made.endpoints.push_back(*where);
    if (comma == std::string_view::npos)
      return made;
    hosts.remove_prefix(comma + 1);
  }
}

etcd_client::etcd_client(std::vector<endpoint> endpoints) : endpoints_(std::move(endpoints)) {}

result<json> etcd_client::call(const char* path, const json& request, milliseconds deadline) const {
  const auto until = clock::now() + deadline;
  const auto count = endpoints_.size();
  const auto first = preferred_.load();
  failure worst{errc::timed_out, "etcd was not asked: no time is left"};
  for (std::size_t i = 0; i < count; ++i) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - clock::now());
    if (left < milliseconds{2}) // One for connecting, one for the answer.
      break;
    const auto which = (first + i) % count;
    auto answer =
      detail::ask_etcd(endpoints_[which], path, request, left / static_cast<int>(count - i));
    if (answer)
      preferred_ = which;
    if (answer || reaction_to(answer.error().code) != reaction::retry)
      return answer;
    if (i == 0 || tells_more(answer.error(), worst))
      worst = answer.error();
  }
  return worst;
}

result<std::optional<etcd_value>> etcd_client::get(const std::string& key,
                                                   milliseconds deadline) const {
  const auto answer = call("/v3/kv/range", {{"key", bytes_in(key)}}, deadline);
  if (!answer)
    return answer.error();
  answer_reader read;
  read.object(*answer, "header");
  std::optional<etcd_value> found;
  for (const auto& each : read.list(*answer, "kvs"))
    found = read.key_value(each).second;
  return read.give(std::move(found));
}

result<etcd_outcome> etcd_client::write(const etcd_transaction& what, milliseconds deadline) const {
  json request{{"compare", json::array()}, {"failure", json::array()}};
  for (const auto& each : what.when) {
    const bool is_created = each.what == etcd_transaction::condition::created;
    request["compare"].push_back(
      {{"key", bytes_in(each.key)},
       {"target", is_created ? "CREATE" : "MOD"},
       {is_created ? "create_revision" : "mod_revision", std::to_string(each.revision)}});
    request["failure"].push_back({{"request_range", {{"key", bytes_in(each.key)}}}});
  }
  const auto key = bytes_in(what.key);
  const json step = what.bytes ? json{{"request_put",
                                       {{"key", key},
                                        {"value", bytes_in(*what.bytes)},
                                        {"lease", std::to_string(what.lease)}}}}
                               : json{{"request_delete_range", {{"key", key}}}};
  request["success"] = json::array({step});
  const auto answer = call("/v3/kv/txn", request, deadline);
  if (!answer)
    return answer.error();
  answer_reader read;
  etcd_outcome outcome;
  outcome.revision = read.number(read.object(*answer, "header"), "revision");
  outcome.written = answer->value("succeeded", json{}) == true;
  if (outcome.written)
    return read.give(std::move(outcome));
  for (const auto& each : read.list(*answer, "responses"))
    for (const auto& found : read.list(read.object(each, "response_range"), "kvs"))
      outcome.present.insert(read.key_value(found));
  return read.give(std::move(outcome));
}

result<etcd_lease> etcd_client::grant_lease(std::chrono::seconds time,
                                            milliseconds deadline) const {
  const auto answer = call("/v3/lease/grant", {{"TTL", std::to_string(time.count())}}, deadline);
  if (!answer)
    return answer.error();
  answer_reader read;
  const etcd_lease made{read.number(*answer, "ID"),
                        std::chrono::seconds{read.number(*answer, "TTL")}};
  if (made.id == 0 || made.time < time)
    return {errc::malformed, "etcd gave a lease of another form than that of etcd v3"};
  return read.give(made);
}

result<std::chrono::seconds> etcd_client::keep_alive(std::int64_t lease,
                                                     milliseconds deadline) const {
  const auto answer = call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}, deadline);
  if (!answer)
    return answer.error();
  answer_reader read;
  const auto left = read.number(read.object(*answer, "result"), "TTL");
  return read.give(std::chrono::seconds{left});
}

} // namespace troupe::storage
