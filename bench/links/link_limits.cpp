// Measures limits of all links: one copy of the payload, and one reading of it.
#include "bench/links/link_contest.hpp"

#include <cstring>

namespace troupe::bench {

namespace {

class copier final : public sender {
public:
  explicit copier(const load& what) : what_(what), from_(what), to_(what) {}

  void run(round_trips& trips) override {
    while (!trips.done()) {
      const auto i = trips.begin();
      std::memcpy(to_.at(i).get(), from_.at(i).get(), what_.bytes);
      // Keeps the compiler from dropping a copy that the next one overwrites.
      asm volatile("" : : "r"(to_.at(i).get()) : "memory");
      trips.end(i);
    }
  }

private:
  load what_;
  payloads from_, to_;
};

class lone_reader final : public sender {
public:
  explicit lone_reader(const load& what) : from_(what), read_(what) {}

  void run(round_trips& trips) override {
    while (!trips.done()) {
      const auto i = trips.begin();
      from_.check_answer(i, read_(from_.at(i).get()));
      trips.end(i);
    }
  }

private:
  payloads from_;
  payload_reader read_;
};

} // namespace

std::vector<contestant> limit_contestants() {
  return {{"memcpy",
           "limit: one copy, one thread, nobody reads",
           {},
           [](const load& what, const std::string&) { return std::make_unique<copier>(what); },
           {}},
          {"read",
           "limit: the receiver's work alone",
           {},
           [](const load& what, const std::string&) { return std::make_unique<lone_reader>(what); },
           {}}};
}

} // namespace troupe::bench
