#include "actors/links/traffic_class.hpp"

namespace troupe {

namespace {

struct classifier {
  traffic_class operator()(const push_request&) const { return traffic_class::bulk; }
  traffic_class operator()(const pull_request& x) const {
    return x.query.latest ? traffic_class::urgent : traffic_class::bulk;
  }
  traffic_class operator()(const push_reply&) const { return traffic_class::urgent; }
  traffic_class operator()(const pull_reply&) const { return traffic_class::urgent; }
  traffic_class operator()(const failure_reply&) const { return traffic_class::urgent; }
  template <class Control>
  traffic_class operator()(const Control&) const {
    return traffic_class::control;
  }
};

} // namespace

traffic_class traffic_class_of(const message& what) { return std::visit(classifier{}, what); }

} // namespace troupe
