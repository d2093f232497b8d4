#include "storage/detail/etcd_gateway.hpp"

#include "base/system/without_signals.hpp"

#include "httplib.h"

namespace troupe::storage::detail {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using json = nlohmann::json;

// Answers have a few hundred bytes; etcd sends no larger ones.
constexpr std::size_t answer_bytes_max = std::size_t{4} << 20;
// A status request is short: the member answers it alone.
constexpr milliseconds status_time{200};
// Codes of gRPC.
constexpr int deadline_exceeded = 4;
constexpr int unavailable = 14;

std::string name_of(const endpoint& where) { return "etcd at " + to_string(where); }

struct answer {
  int status = 0;
  std::string text;
};

failure no_answer(const endpoint& where, httplib::Error why, milliseconds waited,
                  milliseconds deadline) {
  if (why == httplib::Error::Canceled)
    return {errc::malformed, name_of(where) + " answers unlike etcd"};
  const bool connected = why == httplib::Error::Read || why == httplib::Error::Write;
  // The library does not distinguish a deadline from a connection that ended.
  if (why == httplib::Error::ConnectionTimeout || (connected && waited >= deadline / 2))
    return {errc::timed_out,
            name_of(where) + " did not answer within " + std::to_string(deadline.count()) + " ms"};
  return {errc::peer_lost,
          name_of(where) + (connected ? " closed the connection" : " cannot be reached")};
}

result<answer> post(const endpoint& where, const std::string& path, const std::string& body,
                    milliseconds deadline) {
  // The library writes to sockets that the other end may have closed. After each interruption it
  // waits for its whole time again, so a profiler's timer would keep a request for ever.
  const without_signals guard{SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF};
  const auto began = clock::now();
  httplib::Client http{where.host, where.port};
  // Connecting and answering may each take half of the time.
  http.set_connection_timeout(deadline / 2);
  http.set_read_timeout(deadline / 2);
  http.set_write_timeout(deadline / 2);
  http.set_tcp_nodelay(true);
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.body = body;
  request.set_header("Content-Type", "application/json");
  answer got;
  request.response_handler = [&](const httplib::Response& head) {
    got.status = head.status;
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t size, auto, auto) {
    got.text.append(data, size);
    return got.text.size() <= answer_bytes_max && clock::now() - began <= deadline;
  };
  const auto outcome = http.send(request);
  // When etcd refuses, it sends trailers behind the answer, which the library takes for an error.
  const bool is_whole = outcome || (got.status != 0 && json::accept(got.text));
  if (!is_whole)
    return no_answer(where, outcome.error(),
                     std::chrono::duration_cast<milliseconds>(clock::now() - began), deadline);
  return got;
}

/// Returns the user's remedy for a refusal; empty if none is known.
std::string remedy_for(const std::string& words) {
  const auto says = [&](const char* part) { return words.find(part) != std::string::npos; };
  if (says("space exceeded"))
    return "; make room in it (compact, defragment) and disarm its alarm: etcdctl alarm disarm";
  if (says("user name is empty") || says("auth token") || says("permission denied"))
    return "; it asks for a password, which this program cannot give: use an etcd without "
           "authentication";
  return "";
}

bool knows_no_leader(const endpoint& where) {
  const auto got = post(where, "/v3/maintenance/status", "{}", status_time);
  const auto status = got ? json::parse(got->text, nullptr, false) : json{};
  return status.is_object() && status.contains("header") && !status.contains("leader");
}

} // namespace

result<json> ask_etcd(const endpoint& where, const std::string& path, const json& request,
                      milliseconds deadline) {
  const auto got = post(where, path, request.dump(), deadline);
  if (!got && got.error().code == errc::timed_out && knows_no_leader(where))
    return {errc::not_ready, name_of(where) + " has no quorum"};
  if (!got)
    return got.error();
  auto document = json::parse(got->text, nullptr, false);
  if (!document.is_object())
    return {errc::malformed, name_of(where) + " does not answer as etcd does: status "
                               + std::to_string(got->status)};
  // For a stream, the gateway reports the error within the answer.
  const auto problem = document.find("error");
  if (problem == document.end() && got->status == 200)
    return document;
  const auto& details = problem != document.end() && problem->is_object() ? *problem : document;
  const auto code = details.find("code");
  const auto words = details.find("message");
  const auto text = words != details.end() && words->is_string()
                      ? words->get<std::string>()
                      : "status " + std::to_string(got->status);
  if (code != details.end() && (*code == unavailable || *code == deadline_exceeded))
    return {errc::not_ready, name_of(where) + ": " + text};
  return {errc::io_failed, name_of(where) + " refuses: " + text + remedy_for(text)};
}

} // namespace troupe::storage::detail
