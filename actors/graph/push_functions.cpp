// Makes trainers: runs local steps around them, and push functions behind them, on their thread.
// Takes the notes of both, and finds the ports of trainers.
#include "actors/graph/plan.hpp"
#include "actors/protocol/process_name.hpp"
#include "base/splitmix64.hpp"
#include "base/user_code.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct named_function {
  std::string name;
  push_function change;
};

/// Returns a seed for the function of this name (FNV-1a, Fowler, Noll, Vo 1991), so that two
/// functions draw different numbers for one batch.
std::uint64_t seed_for(std::string_view name, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return splitmix64_of(seed ^ hash);
}

/// Gives the gradients of a batch to functions. `whose`: the process.
void apply(const std::vector<named_function>& changes, const std::string& whose,
           program_notes* notes, const batch& work, mutable_tensors gradients) {
  for (const auto& [name, change] : changes) {
    const user_call here{{"push function", name, whose}};
    change({.batch = work.id,
            .epoch = work.epoch,
            .seed = seed_for(name, work.seed),
            .samples = work.samples.size(),
            .keys = work.keys,
            .notes = {notes, name}},
           gradients);
  }
}

/// Returns the push functions of a path, in its order.
std::vector<named_function> functions_of(const stage_list& path) {
  std::vector<named_function> changes;
  for (const auto& part : path)
    if (const auto* const leading = part.get<stage::of_trainer>())
      changes.push_back({part.name(), leading->change});
  return changes;
}

/// Gives notes to a trainer, and its gradients to functions, and marks the calls of both. Functions
/// need the whole gradient on the host, so with one no table is ready early, and no gradient stays
/// on a device.
class changing_trainer final : public trainer {
public:
  changing_trainer(std::unique_ptr<trainer> inner, std::string node, std::string whose,
                   std::vector<named_function> changes, std::shared_ptr<program_notes> notes)
      : inner_(std::move(inner)), node_(std::move(node)), whose_(std::move(whose)),
        changes_(std::move(changes)), notes_(std::move(notes)) {}

  void keys(const batch& work, key_lists touched) override {
    const user_call here{{"trainer", {}, whose_}};
    inner_->keys(work, touched);
  }

  double gradient(const batch& work, const_tensors parameters, mutable_tensors gradients) override {
    auto noted = with_notes(work);
    if (!changes_.empty())
      noted.on_ready = {};
    const double loss = [&] {
      const user_call here{{"trainer", {}, whose_}};
      return inner_->gradient(noted, parameters, gradients);
    }();
    apply(changes_, whose_, notes_.get(), work, gradients);
    return loss;
  }

  std::optional<device_gradient> gradient_on_device(const batch& work, const_tensors parameters,
                                                    const value_identity& which) override {
    if (!changes_.empty())
      return std::nullopt;
    const user_call here{{"trainer", {}, whose_}};
    return inner_->gradient_on_device(with_notes(work), parameters, which);
  }

private:
  batch with_notes(const batch& work) const {
    auto noted = work;
    noted.notes = {notes_.get(), node_};
    return noted;
  }

  std::unique_ptr<trainer> inner_;
  std::string node_;
  std::string whose_; ///< The worker, "worker 1".
  std::vector<named_function> changes_;
  std::shared_ptr<program_notes> notes_;
};

/// Returns a factory that gives the ports of the program's trainer away, if it has any.
trainer_factory with_ports(trainer_factory make, std::vector<planned_end> ends, std::string node,
                           ports_taker take) {
  return [make = std::move(make), ends = std::move(ends), node = std::move(node),
          take = std::move(take)]() -> std::unique_ptr<trainer> {
    const port_collector collector;
    auto made = make();
    if (!made || (ends.empty() && collector.ports().empty()))
      return made;
    auto ports = ports_of(ends, node, *made, collector.ports());
    if (!ports)
      throw std::invalid_argument{ports.error().text};
    if (!take)
      throw std::invalid_argument{"the trainers of " + node
                                  + " have ports, and neither a replay nor a store without servers "
                                    "connects them: leave the ports out"};
    take(*std::move(ports));
    return made;
  };
}

} // namespace

trainer_factory trainer_of(const plan& what, const job_spec& job, std::uint32_t worker,
                           std::shared_ptr<program_notes> notes, ports_taker take) {
  auto make =
    with_ports(what.options.workers.make.of(worker),
               channels_of(what, member_of(worker_id{worker})), what.workers_name, std::move(take));
  if (const auto* const local = what.options.workers.make.local())
    make = [make = std::move(make), local = *local,
            inner_samples =
              (job.batch_samples + local->steps - 1) / local->steps]() -> std::unique_ptr<trainer> {
      auto inner = make();
      return inner ? take_local_steps(std::move(inner), local, inner_samples) : nullptr;
    };
  return [make = std::move(make), node = what.workers_name,
          whose = to_string(process_of(worker_id{worker})), changes = functions_of(what.path),
          notes = std::move(notes)]() -> std::unique_ptr<trainer> {
    auto inner = [&] {
      const user_call here{{"trainer", {}, whose}};
      return make();
    }();
    return inner ? std::make_unique<changing_trainer>(std::move(inner), node, whose, changes, notes)
                 : nullptr;
  };
}

std::function<void(const batch&, mutable_tensors)>
changes_of_part(const plan& what, const member_id& who, std::shared_ptr<program_notes> notes) {
  auto changes = functions_of(what.path);
  if (changes.empty())
    return {};
  const std::uint64_t part = what.pipeline->part_of(who).value_or(0);
  return [changes = std::move(changes), whose = to_string(process_of(who)),
          notes = std::move(notes), part](batch work, mutable_tensors gradients) {
    if (part > 0) // Noise of two parts has to differ.
      work.seed = splitmix64_of(work.seed + splitmix64_step * part);
    apply(changes, whose, notes.get(), work, gradients);
  };
}

} // namespace troupe
