#include "actors/protocol/session/evaluation_plan.hpp"

#include "doctest/doctest.h"

namespace evaluation_plan_test {

using namespace troupe;

namespace {

job_update news_of(std::uint64_t batches_done, job_phase phase = job_phase::training) {
  job_update news;
  news.desired_state.batches_done = batches_done;
  news.desired_state.phase = phase;
  return news;
}

job_update offer_of(std::uint64_t epoch, job_phase phase = job_phase::training) {
  auto news = news_of(0, phase);
  news.offered = epoch;
  return news;
}

} // namespace

TEST_CASE("one evaluation at a time is due, an epoch that ends meanwhile is left out") {
  evaluation_plan plan{evaluated_parameters::epochs, 10};
  CHECK_FALSE(plan.look(news_of(9)));
  CHECK(plan.look(news_of(10)) == 1);
  CHECK_FALSE(plan.look(news_of(25)));
  CHECK_FALSE(plan.done());
  CHECK(plan.look(news_of(39)) == 3);
  CHECK_FALSE(plan.done());
  CHECK_FALSE(plan.look(news_of(39)));
}

TEST_CASE("the final evaluation is due once, also of an epoch that was evaluated") {
  for (const auto which : {evaluated_parameters::epochs, evaluated_parameters::final}) {
    evaluation_plan plan{which, 10};
    if (plan.look(news_of(20)))
      CHECK_FALSE(plan.done());
    CHECK(plan.look(news_of(20, job_phase::finished)) == 2);
    CHECK(plan.done());
    CHECK_FALSE(plan.look(news_of(20, job_phase::finished)));
  }
}

TEST_CASE("each offer is taken, also of an epoch that was evaluated before") {
  evaluation_plan plan{evaluated_parameters::offered, 10};
  CHECK_FALSE(plan.look(news_of(50)));
  CHECK(plan.look(offer_of(5)) == 5);
  CHECK_FALSE(plan.look(offer_of(4)));
  CHECK_FALSE(plan.done());
  CHECK(plan.look(offer_of(4)) == 4);
  CHECK_FALSE(plan.done());
  CHECK_FALSE(plan.look(news_of(50, job_phase::finished))); // The final offer has not come.
  CHECK(plan.look(offer_of(5, job_phase::finished)) == 5);
  CHECK(plan.done());
  CHECK_FALSE(plan.look(offer_of(5, job_phase::finished)));
}

} // namespace evaluation_plan_test
