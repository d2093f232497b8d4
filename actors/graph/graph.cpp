#include "actors/graph/graph.hpp"

namespace troupe {

graph::servers_node graph::servers(std::vector<table_spec> tables) {
  tables_ = std::move(tables);
  servers_node made;
  made.made_ = true;
  return made;
}

graph::workers_node graph::workers(std::uint64_t samples, trainer_factory make) {
  samples_ = samples;
  make_trainer_ = std::move(make);
  return workers_node{*this};
}

graph::judge_node graph::judge(evaluator_factory make) {
  make_evaluator_ = std::move(make);
  return judge_node{*this};
}

void graph::workers_node::into(const servers_node& target) { owner_.workers_wired_ = target.made_; }

void graph::judge_node::of(const servers_node& target) { owner_.judge_wired_ = target.made_; }

result<void> graph::validate() const {
  if (tables_.empty())
    return {errc::invalid_argument, "the graph has no servers with tables: call graph::servers"};
  if (!make_trainer_)
    return {errc::invalid_argument, "the graph has no workers: call graph::workers"};
  if (!workers_wired_)
    return {errc::invalid_argument, "the graph's workers lead nowhere: call .into(servers)"};
  if (make_evaluator_ && !judge_wired_)
    return {errc::invalid_argument, "the graph's judge sees no parameters: call .of(servers)"};
  return {};
}

} // namespace troupe
