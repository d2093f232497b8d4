#include "actors/protocol/session/notice_board.hpp"

#include "doctest/doctest.h"

namespace notice_board_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

struct fixture {
  void say(std::uint32_t worker, const std::string& text, const std::string& topic = "etcd") {
    board.take({log_level::warn, topic, "worker " + std::to_string(worker), text}, now);
  }
  lines after(std::chrono::milliseconds time) {
    now += time;
    return board.lines(now);
  }

  notice_board board;
  time_point now{0};
};

} // namespace

TEST_CASE("the same notice becomes one line until it changes or is over") {
  fixture f;
  f.say(1, "waits");
  CHECK(f.after(299ms).empty());
  CHECK(f.after(1ms) == lines{"worker 1: waits"});
  f.say(1, "waits");
  CHECK(f.after(60s).empty());
  f.say(1, "waits for more");
  CHECK(f.after(1s) == lines{"worker 1: waits for more"});
  f.say(1, "");
  CHECK(f.after(60s).empty());
  f.say(1, "waits for more");
  CHECK(f.after(1s) == lines{"worker 1: waits for more"});
}

TEST_CASE("what is over at once is not told") {
  fixture f;
  f.say(1, "waits");
  f.now += 100ms;
  f.say(1, "");
  CHECK(f.after(1s).empty());
}

TEST_CASE("who says the same at the same time shares a line") {
  fixture f;
  for (std::uint32_t i = 0; i < 12; ++i)
    f.say(i, "waits");
  f.say(12, "waits for another");
  CHECK(f.after(300ms)
        == lines{"worker 0, worker 1, worker 2, worker 3, worker 4, worker 5, worker 6, worker 7 "
                 "(and 4 more): waits",
                 "worker 12: waits for another"});
}

TEST_CASE("one that changes all the time makes a line every 5 s") {
  fixture f;
  lines all;
  for (int i = 0; i < 200; ++i) { // 20 s.
    f.say(1, i % 8 < 4 ? "waits" : "");
    const auto some = f.after(100ms);
    all.insert(all.end(), some.begin(), some.end());
  }
  CHECK(all.size() == 4);
}

TEST_CASE("there are at most five lines a second and none is lost") {
  fixture f;
  for (std::uint32_t i = 0; i < 12; ++i)
    f.say(i, "waits " + std::to_string(i));
  CHECK(f.after(300ms).size() == 5);
  CHECK(f.after(999ms).empty());
  CHECK(f.after(1ms).size() == 5);
  CHECK(f.after(1s) == lines{"worker 10: waits 10", "worker 11: waits 11"});
}

TEST_CASE("topics of one process are told apart") {
  fixture f;
  f.say(1, "waits");
  f.say(1, "cannot accept", "accept");
  CHECK(f.after(300ms) == lines{"worker 1: cannot accept", "worker 1: waits"});
}

TEST_CASE("the next process of that name is told of anew") {
  fixture f;
  f.say(1, "waits");
  CHECK(f.after(300ms).size() == 1);
  f.board.forget("worker 1");
  f.say(1, "waits");
  CHECK(f.after(300ms).empty()); // A line comes at most every 5 s.
  CHECK(f.after(5s) == lines{"worker 1: waits"});
}

TEST_CASE("last words are told") {
  fixture f;
  f.say(1, "the disk is full");
  f.board.forget("worker 1");
  CHECK(f.after(300ms) == lines{"worker 1: the disk is full"});
}

} // namespace notice_board_test
