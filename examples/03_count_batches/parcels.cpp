#include "examples/03_count_batches/parcels.hpp"

#include "examples/03_count_batches/numbered.hpp"
#include "examples/03_count_batches/trainers.hpp"
#include "troupe/own_actors.hpp"

#include <optional>
#include <utility>

namespace count_batches {

namespace {

constexpr int ticks_of_a_burst = 4;

/// Sends numbered parcels to receivers, to trainers, and to the next sender of the circle.
struct sender final : troupe::own_actor {
  explicit sender(std::string folder) : parcel_log(std::move(folder)) {}

  void start() override {
    all.emplace(parts, parcel_log);
    to_trainers.emplace(hints, parcel_log);
    around.emplace(next, parcel_log);
    checks.emplace(prev, parcel_log);
  }

  void tick(troupe::time_point) override {
    if (++ticks % ticks_of_a_burst != 0)
      return;
    for (auto* const each : {&*all, &*to_trainers, &*around})
      each->burst(where().notes);
    checks->count(where().notes);
  }

  troupe::out<parcel_number> parts{"parts"}, hints{"hints"}, next{"next"};
  troupe::in<parcel_number> prev{"prev"};
  std::string parcel_log;
  std::optional<number_sender> all, to_trainers, around;
  std::optional<number_checker> checks;
  int ticks = 0;
};

struct receiver final : troupe::own_actor {
  explicit receiver(std::string folder) : parcel_log(std::move(folder)) {}

  void start() override { checks.emplace(came, parcel_log); }
  void tick(troupe::time_point) override { checks->count(where().notes); }

  troupe::in<parcel_number> came{"came"};
  std::string parcel_log;
  std::optional<number_checker> checks;
};

struct parcel_trainer final : troupe::trainer {
  parcel_trainer(const schedule& all, const std::string& parcel_log)
      : counts(make_trainer(all)), checks(heard, parcel_log) {}

  void keys(const troupe::batch& work, troupe::key_lists touched) override {
    counts->keys(work, touched);
  }
  double gradient(const troupe::batch& work, troupe::const_tensors values,
                  troupe::mutable_tensors gradients) override {
    checks.count(work.notes);
    return counts->gradient(work, values, gradients);
  }

  troupe::in<parcel_number> heard{"heard"};
  std::unique_ptr<troupe::trainer> counts;
  number_checker checks;
};

} // namespace

std::unique_ptr<troupe::trainer> make_parcel_trainer(const schedule& all,
                                                     const std::string& parcel_log) {
  return std::make_unique<parcel_trainer>(all, parcel_log);
}

void add_parcels(troupe::graph& g, const troupe::node<troupe::workers>& counters,
                 const std::string& parcel_log) {
  using enum troupe::join_shape;
  const auto senders =
    g.add("senders", troupe::actors<sender>{
                       .count = 2, .make = [=] { return std::make_unique<sender>(parcel_log); }});
  const auto receivers =
    g.add("receivers", troupe::actors<receiver>{.count = 2, .make = [=] {
                                                  return std::make_unique<receiver>(parcel_log);
                                                }});
  g.join(senders, &sender::parts, receivers, &receiver::came, spread, parcel_window);
  g.join(senders, &sender::hints, counters, &parcel_trainer::heard, spread, parcel_window);
  g.join(senders, &sender::next, senders, &sender::prev, circle, parcel_window);
}

} // namespace count_batches
