#include "actors/transport/frames/traffic_class.hpp"

#include <algorithm>

namespace troupe {

namespace {

struct classifier {
  traffic_class operator()(const request_list& x) const {
    const bool overtake = std::ranges::all_of(x.items, [](const auto& each) {
      return traffic_class_of(each.what) == traffic_class::urgent;
    });
    return overtake ? traffic_class::urgent : traffic_class::bulk;
  }
  traffic_class operator()(const replica_message& x) const {
    const bool is_large =
      std::holds_alternative<entry_message>(x.what) || std::holds_alternative<copy_part>(x.what);
    return is_large ? traffic_class::bulk : traffic_class::urgent;
  }
  traffic_class operator()(const channel_message& x) const {
    return std::holds_alternative<parcels_taken>(x) ? traffic_class::urgent : traffic_class::bulk;
  }
  traffic_class operator()(const answer_list&) const { return traffic_class::urgent; }
  template <class Control>
  traffic_class operator()(const Control&) const {
    return traffic_class::control;
  }
};

} // namespace

traffic_class traffic_class_of(const request& what) {
  return overtakes(what) ? traffic_class::urgent : traffic_class::bulk;
}

traffic_class traffic_class_of(const message& what) { return std::visit(classifier{}, what); }

} // namespace troupe
