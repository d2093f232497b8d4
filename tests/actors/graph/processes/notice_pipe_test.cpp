#include "actors/graph/processes/notice_pipe.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <thread>

namespace notice_pipe_test {

using namespace troupe;

namespace {

using lines = std::vector<told>;
const process_name server{role::server, 3};

/// Returns a notice of the server, as the launcher reads it.
notice said(const std::string& topic, const std::string& text) {
  return {log_level::warn, topic, "server 3", text};
}

} // namespace

TEST_CASE("a notice is read as it was said whatever the pieces it comes in") {
  const auto what = said("etcd", "waits for etcd: nobody answers");
  const auto over = said("etcd", "");
  const auto alone = said("", "no state is saved");
  const process_word last{server, word_kind::hopeless, "no disk"};
  const auto line =
    encode(server, what) + encode(server, over) + encode(server, alone) + encode(last);
  notice_reader reader;
  lines all;
  for (const char c : line)
    for (auto& each : reader.read({&c, 1}))
      all.push_back(each);
  CHECK(all == lines{what, over, alone, last});
  CHECK(notice_reader{}.read(line) == lines{what, over, alone, last});
}

TEST_CASE("a notice stays one line of one write") {
  const std::string four = "\xf0\x9f\x98\x80";
  std::string huge = "\n";
  for (int i = 0; i < 5000; ++i)
    huge += four;
  const auto line = encode(server, said(std::string(5000, 't'), huge));
  CHECK(line.size() <= PIPE_BUF);
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(notice_reader{}.read(line).size() == 1);
}

TEST_CASE("what is no notice is left out") {
  notice_reader reader;
  CHECK(reader
          .read("\n\n1\n1 3\n1 3 0\n1 3 0 \n9 1 0 topic text\nx 1 0 topic text\n1 -1 0 topic text\n"
                "1 1 5 topic text\n")
          .empty());
  CHECK(reader.read(std::string(100'000, 'x')).empty());
  CHECK(reader.read("\n" + encode(server, said("a", "b"))) == lines{said("a", "b")});
}

TEST_CASE("a pipe brings what processes say and nobody waits for its reader") {
  notice_pipe pipe;
  REQUIRE(pipe.writing_end() >= 0);
  const notice_writer writer{pipe.writing_end(), server};
  CHECK((fcntl(pipe.writing_end(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(pipe.read().empty());
  writer.say(said("etcd", "waits"));
  CHECK(pipe.read() == lines{said("etcd", "waits")});
  for (int i = 0; i < 100'000; ++i) // More notices than a pipe holds.
    writer.say(said("etcd", "waits"));
  CHECK(pipe.read().size() > 100);
  notice_writer{-1, server}.say(said("etcd", "waits")); // The notice is dropped.
}

TEST_CASE("a notice that is tried finds a full pipe at once and is written later") {
  notice_pipe pipe;
  const notice_writer writer{pipe.writing_end(), server};
  const auto begun = std::chrono::steady_clock::now();
  while (writer.try_to_tell(word_kind::works))
    ;
  CHECK_FALSE(writer.try_to_tell(word_kind::works));
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::milliseconds{500});
  CHECK(pipe.read().front() == told{process_word{server, word_kind::works}});
  CHECK(writer.try_to_tell(word_kind::works));
  CHECK(notice_writer{-1, server}.try_to_tell(word_kind::works)); // The notice is dropped.
}

TEST_CASE("a notice that must arrive waits until the pipe has room") {
  notice_pipe pipe;
  const notice_writer writer{pipe.writing_end(), server};
  for (int i = 0; i < 100'000; ++i)
    writer.say(said("etcd", "waits"));
  std::thread reader{[&] {
    while (true)
      for (const auto& each : pipe.read())
        if (each == told{process_word{server, word_kind::dismissed}})
          return;
  }};
  writer.tell(word_kind::dismissed);
  reader.join();
}

} // namespace notice_pipe_test
