#include "kernels/devices/shared_parameters.hpp"

#include "doctest/doctest.h"

#include <future>
#include <vector>

namespace troupe::shared_parameters_test {

namespace {

using float_memory = std::shared_ptr<const float>;

float_memory some_memory() { return {new float[2]{}, std::default_delete<float[]>{}}; }

value_identity identity_of(const std::vector<float_memory>& parts) {
  value_identity made;
  for (const auto& x : parts)
    made.add(x);
  return made;
}

} // namespace

TEST_CASE("values are the same by their memory, and not by what it contains") {
  const auto a = some_memory(), b = some_memory();
  CHECK(identity_of({a, b}).same_as(identity_of({a, b})));
  CHECK_FALSE(identity_of({a, b}).same_as(identity_of({a})));
  CHECK_FALSE(identity_of({a, b}).same_as(identity_of({b, a})));
  CHECK_FALSE(identity_of({a}).same_as(identity_of({some_memory()})));
  CHECK_FALSE(identity_of({}).same_as(identity_of({})));
  const float_memory second{a, a.get() + 1}; // The owner is the same.
  CHECK_FALSE(identity_of({a}).same_as(identity_of({second})));
}

TEST_CASE("memory that is used again has another identity") {
  float place = 0;
  value_identity first;
  {
    const float_memory once{&place, [](const float*) {}};
    first.add(once);
    CHECK(first.same_as(identity_of({once})));
  }
  const float_memory again{&place, [](const float*) {}};
  CHECK_FALSE(first.same_as(identity_of({again})));
}

TEST_CASE("the first one brings parameters, and the others find them") {
  shared_parameters shared;
  const auto memory = some_memory(), values = some_memory();
  const auto which = identity_of({memory}), other = identity_of({some_memory()});
  CHECK_FALSE(shared.find(which));
  std::vector<std::future<std::optional<shared_parameters::source>>> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.push_back(std::async(std::launch::async, [&] { return shared.find(which); }));
  shared.put(which, {7, values});
  for (auto& x : waiting) {
    const auto found = x.get();
    REQUIRE(found);
    CHECK(found->device == 7);
    CHECK(found->values == values);
  }
  CHECK_FALSE(shared.find(other)); // `other` displaces `which`.
  CHECK_FALSE(shared.find(which));
  shared.put(other, {8, values}); // `which` has displaced `other`.
  shared.put(which, {9, values});
  CHECK(shared.find(which)->device == 9);
}

TEST_CASE("what is not brought is brought by the next one") {
  shared_parameters shared;
  const auto memory = some_memory();
  const auto which = identity_of({memory});
  CHECK_FALSE(shared.find(which));
  auto next = std::async(std::launch::async, [&] { return shared.find(which); });
  shared.give_up(which);
  CHECK_FALSE(next.get());
  shared.put(which, {1, memory});
  CHECK(shared.find(which));
}

TEST_CASE("who waits for parameters that others took the place of brings them") {
  shared_parameters shared;
  const auto memory = some_memory();
  const auto which = identity_of({memory}), other = identity_of({some_memory()});
  CHECK_FALSE(shared.find(which));
  auto waits = std::async(std::launch::async, [&] { return shared.find(which); });
  auto takes = std::async(std::launch::async, [&] { return shared.find(other); });
  CHECK_FALSE(waits.get()); // This holds whether it waited or came later.
  CHECK_FALSE(takes.get());
}

TEST_CASE("values without an identity are nobody else's") {
  shared_parameters shared;
  CHECK_FALSE(shared.find({}));
  shared.put({}, {1, some_memory()});
  CHECK_FALSE(shared.find({}));
}

} // namespace troupe::shared_parameters_test
