#include "actors/links/traffic_class.hpp"

namespace troupe {

namespace {

struct classifier {
  traffic_class operator()(const request_message& x) const { return traffic_class_of(x.what); }
  traffic_class operator()(const reply_message&) const { return traffic_class::urgent; }
  traffic_class operator()(const failure_message&) const { return traffic_class::urgent; }
  template <class Control>
  traffic_class operator()(const Control&) const {
    return traffic_class::control;
  }
};

} // namespace

traffic_class traffic_class_of(const request& what) {
  const bool overtakes = !what.push && what.pull && what.pull->latest;
  return overtakes ? traffic_class::urgent : traffic_class::bulk;
}

traffic_class traffic_class_of(const message& what) { return std::visit(classifier{}, what); }

} // namespace troupe
