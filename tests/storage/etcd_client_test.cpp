#include "storage/etcd_client.hpp"

#include "base/base64.hpp"
#include "tests/storage/etcd_fixture.hpp"

#include "doctest/doctest.h"
#include "httplib.h"

#include <signal.h>
#include <sys/time.h>

#include <chrono>
#include <functional>
#include <future>
#include <sstream>
#include <thread>

namespace troupe::storage::etcd_client_test {

using namespace std::chrono_literals;

namespace {

/// Answers every request in the same way.
class fake_gateway {
public:
  using answer = std::function<void(const httplib::Request&, httplib::Response&)>;

  explicit fake_gateway(const answer& how) {
    server_.Post(".*", how);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread{[this] { server_.listen_after_bind(); }};
  }
  fake_gateway(int status, const std::string& body)
      : fake_gateway([=](const httplib::Request&, httplib::Response& response) {
          response.status = status;
          response.set_content(body, "application/json");
        }) {}
  ~fake_gateway() {
    while (!server_.is_running()) // A stop before it listens has no effect.
      std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  fake_gateway(const fake_gateway&) = delete;
  fake_gateway& operator=(const fake_gateway&) = delete;

  endpoint where() const { return {"127.0.0.1", static_cast<std::uint16_t>(port_)}; }

private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

/// Answers one connection with these bytes and closes it.
class raw_gateway {
public:
  explicit raw_gateway(std::string answer) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread{[this, answer = std::move(answer)] {
      const int link = ::accept(listener_, nullptr, nullptr);
      char asked[4096];
      [[maybe_unused]] const auto read = ::recv(link, asked, sizeof asked, 0);
      [[maybe_unused]] const auto sent = ::send(link, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::shutdown(link, SHUT_WR);
      while (::recv(link, asked, sizeof asked, 0) > 0)
        ; // Otherwise the request's rest would reset the connection.
      ::close(link);
    }};
  }
  ~raw_gateway() {
    thread_.join();
    ::close(listener_);
  }
  raw_gateway(const raw_gateway&) = delete;
  raw_gateway& operator=(const raw_gateway&) = delete;

  endpoint where() const { return {"127.0.0.1", port_}; }

private:
  const int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  std::uint16_t port_ = 0;
  std::thread thread_;
};

/// Returns a refusal in the form of etcd 3.4: in chunks, with a trailer.
std::string rejection(const std::string& status, const std::string& body) {
  std::ostringstream size;
  size << std::hex << body.size();
  return "HTTP/1.1 " + status
         + "\r\nContent-Type: application/json\r\nTrailer: Grpc-Trailer-Content-Type\r\n"
           "Transfer-Encoding: chunked\r\n\r\n"
         + size.str() + "\r\n" + body
         + "\r\n0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n";
}

const std::string header = R"("header":{"revision":"7"})";

} // namespace

TEST_CASE("a URL of etcd names its members and the job") {
  const auto one = parse_etcd_url("etcd://10.0.0.1:2379");
  REQUIRE(one);
  CHECK(one->endpoints == std::vector<endpoint>{{"10.0.0.1", 2379}});
  CHECK(one->job.empty());
  const auto more = parse_etcd_url("etcd://a:1,[fe80::1]:2,c.example:65535/my/job");
  REQUIRE(more);
  CHECK(more->endpoints == std::vector<endpoint>{{"a", 1}, {"fe80::1", 2}, {"c.example", 65535}});
  CHECK(more->job == "my/job");
  CHECK(to_string(more->endpoints[1]) == "[fe80::1]:2");
}

TEST_CASE("what is no URL of etcd is refused") {
  for (const auto* text :
       {"", "etcd://", "etcd:/a:1", "http://a:1", "etcd://a", "etcd://a:", "etcd://a:0",
        "etcd://a:65536", "etcd://a:-1", "etcd://a:1x", "etcd://:1", "etcd://a:1,", "etcd://,a:1",
        "etcd://fe80::1:2", "etcd://[]:1", "etcd://me@a:1", "etcd:///job"}) {
    const auto refused = parse_etcd_url(text);
    REQUIRE_MESSAGE(!refused, text);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().text.find("etcd://HOST:PORT") != std::string::npos);
  }
}

TEST_CASE("base64 is read as it was written, and nothing else is") {
  CHECK(detail::to_base64("") == "");
  CHECK(detail::to_base64("f") == "Zg==");
  CHECK(detail::to_base64("fo") == "Zm8=");
  CHECK(detail::to_base64("foobar") == "Zm9vYmFy");
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all.push_back(static_cast<char>(i));
    CHECK(detail::from_base64(detail::to_base64(all)) == all);
  }
  for (const auto* text : {"Z", "Zg=", "Zh==", "Z===", "====", "Zg==Zg==", "Zm9v YmF", "Zm\n9"})
    CHECK_MESSAGE(!detail::from_base64(text), text);
}

TEST_CASE("who is not there is not reached") {
  const etcd_client client{{{"127.0.0.1", free_port()}}};
  const auto outcome = client.get("key", 1s);
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::peer_lost);
  CHECK(outcome.error().text.find("127.0.0.1:") != std::string::npos);
  CHECK(outcome.error().text.find("cannot be reached") != std::string::npos);
}

TEST_CASE("members are tried in turn, and the one that answered stays the first") {
  std::atomic<int> refusals = 0;
  const fake_gateway without_leader{[&](const httplib::Request&, httplib::Response& response) {
    ++refusals;
    response.status = 503;
    response.set_content(R"({"error":"etcdserver: no leader","code":14})", "application/json");
  }};
  const fake_gateway good{200, "{" + header + "}"};
  const etcd_client client{{{"127.0.0.1", free_port()}, without_leader.where(), good.where()}};
  for (int i = 0; i < 3; ++i) {
    const auto outcome = client.get("key", 2s);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error().text));
    CHECK(!*outcome);
  }
  CHECK(refusals == 1);
}

TEST_CASE("of several failures the one that knows most is told") {
  const fake_gateway without_leader{503, R"({"message":"etcdserver: no leader","code":14})"};
  const etcd_client client{{without_leader.where(), {"127.0.0.1", free_port()}}};
  const auto outcome = client.get("key", 1s);
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::not_ready);
  CHECK(outcome.error().text.find("etcdserver: no leader") != std::string::npos);
}

TEST_CASE("what etcd refuses is told in its words and not tried again") {
  std::atomic<int> asked = 0;
  const auto refuse = [&](const httplib::Request&, httplib::Response& response) {
    ++asked;
    response.status = 429;
    response.set_content(R"({"message":"etcdserver: mvcc: database space exceeded","code":8})",
                         "application/json");
  };
  const fake_gateway one{refuse}, other{refuse};
  const etcd_client client{{one.where(), other.where()}};
  const auto outcome = client.write({{}, "key", "value"}, 1s);
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::io_failed);
  CHECK(outcome.error().text.find("database space exceeded") != std::string::npos);
  CHECK(asked == 1);
}

TEST_CASE("a refusal with trailers is told in etcd's words, with what to do") {
  const raw_gateway full{
    rejection("429 Too Many Requests",
              R"({"message":"etcdserver: mvcc: database space exceeded","code":8})")};
  const auto refused = etcd_client{{full.where()}}.write({{}, "key", "value"}, 2s);
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::io_failed);
  CHECK(refused.error().text
        == "etcd at " + to_string(full.where())
             + " refuses: etcdserver: mvcc: database space exceeded; make room in it (compact, "
               "defragment) and disarm its alarm: etcdctl alarm disarm");
  const raw_gateway locked{
    rejection("400 Bad Request", R"({"message":"etcdserver: user name is empty","code":3})")};
  const auto unknown = etcd_client{{locked.where()}}.get("key", 2s);
  REQUIRE(!unknown);
  CHECK(unknown.error().code == errc::io_failed);
  CHECK(unknown.error().text
        == "etcd at " + to_string(locked.where())
             + " refuses: etcdserver: user name is empty; it asks for a password, which this "
               "program cannot give: use an etcd without authentication");
}

TEST_CASE("an answer that is cut off is none") {
  auto bytes = rejection("200 OK", "{" + header + "}");
  const raw_gateway cut{bytes.substr(0, bytes.find('}'))};
  const auto outcome = etcd_client{{cut.where()}}.get("key", 2s);
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::peer_lost);
}

TEST_CASE("answers of another form than etcd's are malformed") {
  const std::string too_large(std::size_t{5} << 20, ' ');
  for (const auto& body :
       {std::string{}, std::string{"<html>"}, std::string{"[]"}, std::string{"7"},
        std::string{R"({"kvs":[]})"}, "{" + header + R"(,"kvs":{}})",
        "{" + header + R"(,"kvs":[7]})", "{" + header + R"(,"kvs":[{"value":"?"}]})",
        "{" + header + R"(,"kvs":[{"value":7}]})",
        "{" + header + R"(,"kvs":[{"mod_revision":"x"}]})",
        "{" + header + R"(,"kvs":[{"lease":{}}]})", too_large}) {
    const fake_gateway odd{200, body};
    const auto outcome = etcd_client{{odd.where()}}.get("key", 2s);
    REQUIRE_MESSAGE(!outcome, body.substr(0, 60));
    CHECK_MESSAGE(outcome.error().code == errc::malformed, body.substr(0, 60));
  }
  const fake_gateway odd{404, "Not Found"};
  CHECK(etcd_client{{odd.where()}}.get("key", 2s).error().code == errc::malformed);
}

TEST_CASE("a lease and a transaction of another form are malformed") {
  const fake_gateway no_lease{200, R"({"TTL":"2"})"};
  CHECK(etcd_client{{no_lease.where()}}.grant_lease(1s, 1s).error().code == errc::malformed);
  const fake_gateway short_lease{200, R"({"ID":"5","TTL":"1"})"};
  CHECK(etcd_client{{short_lease.where()}}.grant_lease(2s, 1s).error().code == errc::malformed);
  const fake_gateway no_result{200, "{" + header + "}"};
  CHECK(etcd_client{{no_result.where()}}.keep_alive(5, 1s).error().code == errc::malformed);
  const fake_gateway odd_response{200, "{" + header + R"(,"responses":[{"response_put":{}}]})"};
  CHECK(etcd_client{{odd_response.where()}}.write({{}, "key", "value"}, 1s).error().code
        == errc::malformed);
}

TEST_CASE("a lease that is gone has no time left") {
  const fake_gateway gone{200, R"({"result":{"ID":"5"}})"};
  const auto left = etcd_client{{gone.where()}}.keep_alive(5, 1s);
  REQUIRE(left);
  CHECK(left->count() == 0);
}

TEST_CASE("who does not answer is waited for until the deadline") {
  std::promise<void> over;
  const auto ended = over.get_future().share();
  const fake_gateway silent{[=](const httplib::Request&, httplib::Response&) { ended.wait(); }};
  const auto outcome = etcd_client{{silent.where()}}.get("key", 400ms);
  over.set_value();
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::timed_out);
  CHECK(outcome.error().text.find("did not answer within") != std::string::npos);
}

TEST_CASE("a timer that interrupts each wait does not lengthen a request") {
  std::promise<void> over;
  const auto ended = over.get_future().share();
  const fake_gateway silent{[=](const httplib::Request&, httplib::Response&) { ended.wait(); }};
  std::jthread ends_a_longer_wait{[&] {
    std::this_thread::sleep_for(3s);
    over.set_value();
  }};
  struct sigaction before {
  }, counting{};
  counting.sa_handler = [](int) {};
  sigaction(SIGALRM, &counting, &before);
  const itimerval each_10_ms{{0, 10'000}, {0, 10'000}}, never{};
  setitimer(ITIMER_REAL, &each_10_ms, nullptr);
  const auto begun = std::chrono::steady_clock::now();
  const auto outcome = etcd_client{{silent.where()}}.get("key", 400ms);
  const auto took = std::chrono::steady_clock::now() - begun;
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::timed_out);
  CHECK(took < 2s);
}

TEST_CASE("without quorum that is told") {
  std::promise<void> over;
  const auto ended = over.get_future().share();
  const fake_gateway alone{[=](const httplib::Request& request, httplib::Response& response) {
    if (request.path == "/v3/maintenance/status")
      response.set_content("{" + header + R"(,"version":"3.4"})", "application/json");
    else
      ended.wait();
  }};
  const auto outcome = etcd_client{{alone.where()}}.get("key", 400ms);
  over.set_value();
  REQUIRE(!outcome);
  CHECK(outcome.error().code == errc::not_ready);
  CHECK(outcome.error().text.find("has no quorum") != std::string::npos);
}

TEST_CASE("etcd: keys and values may be any bytes, and conditions hold back what is written") {
  if (!etcd_cluster::is_installed())
    return;
  const etcd_cluster etcd{1};
  const etcd_client client{etcd.endpoints()};
  using condition = etcd_transaction::condition;
  const std::string key{"k\0\xff\"", 4}, value{"v\0\xfe\n", 4};
  const auto made = client.write({{{key, condition::created, 0}}, key, value}, 2s);
  REQUIRE(made);
  CHECK(made->written);
  const auto found = client.get(key, 2s);
  REQUIRE(found);
  REQUIRE(*found);
  CHECK((*found)->bytes == value);
  CHECK((*found)->created == made->revision);
  CHECK((*found)->modified == made->revision);
  CHECK((*found)->lease == 0);
  const auto again = client.write({{{key, condition::created, 0}}, key, "other"}, 2s);
  REQUIRE(again);
  CHECK(!again->written);
  REQUIRE(again->present.contains(key));
  CHECK(again->present.at(key).bytes == value);
  const auto changed = client.write({{{key, condition::modified, made->revision}}, key, "new"}, 2s);
  REQUIRE(changed);
  CHECK(changed->written);
  CHECK(changed->revision > made->revision);
  const auto removed = client.write({{}, key, std::nullopt}, 2s);
  REQUIRE(removed);
  CHECK(removed->written);
  CHECK(!client.get(key, 2s)->has_value());
}

TEST_CASE("etcd: of three members one may be lost, and two may not") {
  if (!etcd_cluster::is_installed())
    return;
  etcd_cluster etcd{3};
  const etcd_client client{etcd.endpoints()};
  REQUIRE(client.write({{}, "key", "value"}, 3s));
  etcd.kill(0);
  CHECK(etcd.answers());
  etcd.kill(1);
  // The remaining member notices the loss, but may report it late.
  std::optional<failure> lost;
  for (int i = 0; i < 20 && (!lost || lost->code != errc::not_ready); ++i) {
    const auto outcome = client.get("key", 1s);
    REQUIRE((!outcome || !lost)); // No answer follows an error.
    if (!outcome)
      lost = outcome.error();
  }
  REQUIRE(lost);
  CHECK(lost->code == errc::not_ready);
  MESSAGE(lost->text);
  etcd.start(1);
  REQUIRE(etcd.answers());
  CHECK((*client.get("key", 3s))->bytes == "value");
}

} // namespace troupe::storage::etcd_client_test
