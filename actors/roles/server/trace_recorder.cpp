#include "actors/roles/server/trace_recorder.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

storage::trace_entry record_of(time_point now, const step_header& step) {
  storage::trace_entry record;
  record.time_ns = static_cast<std::uint64_t>(now.count());
  record.batch = step.batch;
  record.clock = step.clock;
  record.worker = step.worker;
  record.incarnation = step.incarnation;
  return record;
}

bool same_gradient(const step_header& x, const step_header& y) {
  return x.worker == y.worker && x.incarnation == y.incarnation && x.batch == y.batch;
}

} // namespace

trace_recorder::trace_recorder(record_options options, storage::trace_header header)
    : options_(std::move(options)), header_(std::move(header)), file_(options_.directory, header_) {
}

void trace_recorder::applied(time_point now, std::uint64_t version,
                             std::span<const push_request* const> pushes, bool is_clock) {
  std::vector<step_header> steps;
  for (const auto* push : pushes)
    std::ranges::move(push->steps(), std::back_inserter(steps));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    auto record = record_of(now, step);
    record.version = version;
    // A bsp gradient is computed from the same values that it is applied to.
    record.base_version = is_clock ? version - 1 : pushes.front()->base_version;
    record.slot = static_cast<std::uint16_t>(i);
    record.slots = static_cast<std::uint16_t>(steps.size());
    file_.add(record);
    std::erase_if(reads_, [&](const auto& x) { return same_gradient(x.step, step); });
  }
}

void trace_recorder::answered(const step_header& step, std::uint64_t version) {
  std::erase_if(reads_, [&](const auto& x) { return same_gradient(x.step, step); });
  reads_.push_back({step, version});
}

void trace_recorder::repeated(time_point now, const step_header& step, std::uint64_t base_version) {
  write_read(now, step, base_version);
  std::erase_if(reads_, [&](const auto& x) { return same_gradient(x.step, step); });
}

void trace_recorder::set_workers(time_point now, const std::vector<clock_entry>& workers) {
  std::erase_if(reads_, [&](const auto& x) {
    const bool stays = std::ranges::any_of(workers, [&](const auto& y) {
      return y.worker == x.step.worker && y.incarnation == x.step.incarnation;
    });
    if (!stays)
      write_read(now, x.step, x.version);
    return !stays;
  });
}

void trace_recorder::write_read(time_point now, const step_header& step,
                                std::uint64_t base_version) {
  auto record = record_of(now, step);
  record.event = storage::push_event::read;
  record.base_version = base_version;
  file_.add(record);
}

void trace_recorder::flush() {
  if (const auto written = file_.flush(); !written && options_.complain)
    options_.complain("the record of this run ends here: " + written.error().text);
}

} // namespace troupe
