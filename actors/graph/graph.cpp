#include "actors/graph/graph.hpp"

namespace troupe {

graph::servers_node graph::servers(std::vector<table_spec> tables) {
  if (!tables_.empty())
    note_mistake("graph::servers was called twice: give all tables to one call");
  tables_ = std::move(tables);
  servers_node made;
  made.owner_ = this;
  return made;
}

graph::workers_node graph::workers(std::uint64_t samples, trainer_factory make) {
  numbered_trainer_factory alike;
  if (make)
    alike = [make = std::move(make)](std::uint32_t) { return make(); };
  return workers(samples, std::move(alike));
}

trainer_factory graph::make_trainer(std::uint32_t worker) const {
  return [make = make_trainer_, worker] { return make(worker); };
}

graph::workers_node graph::workers(std::uint64_t samples, numbered_trainer_factory make) {
  if (make_trainer_)
    note_mistake("graph::workers was called twice: all workers of a graph are alike");
  samples_ = samples;
  make_trainer_ = std::move(make);
  return workers_node{*this};
}

graph::evaluator_node graph::evaluator(evaluator_factory make) {
  if (make_evaluator_)
    note_mistake("graph::evaluator was called twice: a graph has one evaluator");
  make_evaluator_ = std::move(make);
  return evaluator_node{*this};
}

void graph::workers_node::into(const servers_node& target) {
  owner_.workers_wired_ = owner_.owns(target);
}

void graph::evaluator_node::of(const servers_node& target) {
  owner_.evaluator_wired_ = owner_.owns(target);
}

bool graph::owns(const servers_node& target) {
  if (target.owner_ != nullptr && target.owner_ != this)
    note_mistake("the graph's nodes lead to the servers of another graph");
  return target.owner_ == this;
}

void graph::note_mistake(const std::string& what) {
  if (mistake_.empty())
    mistake_ = what;
}

result<void> graph::validate() const {
  if (!mistake_.empty())
    return {errc::invalid_argument, mistake_};
  if (tables_.empty())
    return {errc::invalid_argument, "the graph has no servers with tables: call graph::servers"};
  if (!make_trainer_)
    return {errc::invalid_argument, "the graph has no workers: call graph::workers"};
  if (!workers_wired_)
    return {errc::invalid_argument, "the graph's workers lead nowhere: call .into(servers)"};
  if (make_evaluator_ && !evaluator_wired_)
    return {errc::invalid_argument, "the graph's evaluator sees no parameters: call .of(servers)"};
  return {};
}

} // namespace troupe
