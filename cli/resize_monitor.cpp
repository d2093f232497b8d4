#include "cli/resize_monitor.hpp"

#include "actors/protocol/process_name.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// A coordinator that starts again is silent for up to 3 s.
constexpr std::chrono::seconds answer_timeout{6};
// Updates repeat every 100 ms. After a loss of etcd the next coordinator comes later.
constexpr std::chrono::seconds silence_timeout{30};

std::string name_of(const server_id& server) { return fmt::format("server {}", server.value); }

template <class Servers>
std::string names_of(const Servers& servers) {
  std::vector<std::string> names;
  for (const auto& server : servers)
    names.push_back(name_of(server));
  return fmt::format("{}", fmt::join(names, ", "));
}

bool contains(const std::vector<server_id>& all, const server_id& server) {
  return std::ranges::find(all, server) != all.end();
}

} // namespace

resize_monitor::resize_monitor(resize_request request, job_spec job, std::string coordinator,
                               std::chrono::seconds timeout, time_point now)
    : request_(std::move(request)), job_(std::move(job)), coordinator_(std::move(coordinator)),
      timeout_(timeout), started_at_(now) {}

std::vector<std::string> resize_monitor::look(const std::optional<job_update>& news,
                                              time_point now) {
  std::vector<std::string> lines;
  if (!news) {
    if (now - started_at_ > std::min(answer_timeout, timeout_))
      outcome_ =
        failure{errc::timed_out, "no job answers at " + coordinator_ + ": the run has ended"};
    return lines;
  }
  if (news->stop) {
    outcome_ = news->failed.value_or(
      failure{errc::invalid_argument,
              servers_.empty() ? "the job has ended" : "the job ended before that"});
    return lines;
  }
  if (servers_.empty()) {
    events_term_ = news->term;
    events_seen_ = news->desired_state.events_total;
    choose(news->desired_state, lines);
  }
  show_events(*news, lines);
  hear(*news, now, lines);
  if (!heard_ && is_heard(news->desired_state)) {
    heard_ = true;
    wanted_ = {};
  }
  if (outcome_)
    return lines;
  if (heard_ && is_done(news->desired_state)) {
    outcome_.emplace();
    if (!request_.drain.empty())
      lines.push_back("drained " + names_of(servers_));
  } else if (now - started_at_ > timeout_) {
    outcome_ = failure{errc::timed_out, fmt::format("not done within {} s{}", timeout_.count(),
                                                    heard_ ? "; the job goes on with it" : "")};
  }
  return lines;
}

void resize_monitor::hear(const job_update& news, time_point now, std::vector<std::string>& lines) {
  const std::pair word{news.term, news.sequence};
  if (std::exchange(last_word_, word) != word) {
    last_word_at_ = now;
    told_of_silence_ = false;
  } else if (now - last_word_at_ > answer_timeout && !told_of_silence_) {
    told_of_silence_ = true;
    lines.push_back(fmt::format("no word from the coordinator at {} for {} s", coordinator_,
                                answer_timeout.count()));
  } else if (now - last_word_at_ > silence_timeout) {
    outcome_ = failure{errc::timed_out,
                       fmt::format("no word from the coordinator at {} for {} s: the run has ended",
                                   coordinator_, silence_timeout.count())};
  }
}

void resize_monitor::choose(const job_status& job, std::vector<std::string>& lines) {
  const auto& present = job.servers;
  servers_ = request_.drain;
  wanted_.drain.assign(servers_.begin(), servers_.end());
  were_there_ = std::ranges::all_of(servers_, [&](auto& x) { return contains(present, x); });
  for (std::uint32_t index = 0; servers_.size() < request_.add; ++index)
    if (!contains(present, {index}))
      servers_.insert({index});
  if (request_.add == 0) {
    lines.push_back("draining " + names_of(servers_));
    return;
  }
  wanted_.add.assign(servers_.begin(), servers_.end());
  lines.push_back("asked for " + names_of(servers_));
  const auto used = std::uint64_t{job_.shard_count()} * job_.replicas;
  if (used <= present.size() - job.draining.size())
    lines.push_back(fmt::format("{} of {} will be without work, as there are enough servers; "
                                "--shards is chosen when a job begins",
                                names_of(servers_), job_.name));
}

void resize_monitor::show_events(const job_update& news, std::vector<std::string>& lines) {
  if (std::exchange(events_term_, news.term) != news.term) // A new coordinator counts from 0.
    events_seen_ = 0;
  const auto& [events, total] =
    std::tie(news.desired_state.events, news.desired_state.events_total);
  const auto first = total - events.size();
  for (auto i = std::max(first, events_seen_); i < total; ++i) {
    const auto& event = events[i - first];
    // The command says these two itself, of all servers together.
    if (event.kind == event_kind::server_draining || event.kind == event_kind::server_drained)
      continue;
    for (const auto& server : servers_)
      if (event.text("member") == name_of(server))
        lines.push_back(text_of(event));
  }
  events_seen_ = std::max(events_seen_, total);
}

bool resize_monitor::is_heard(const job_status& job) const {
  return std::ranges::all_of(servers_, [&](const server_id& x) {
    return request_.add > 0
             ? contains(job.servers, x)
             : contains(job.draining, x) || (were_there_ && !contains(job.servers, x));
  });
}

bool resize_monitor::is_done(const job_status& job) const {
  return std::ranges::all_of(servers_, [&](const server_id& x) {
    if (request_.add == 0)
      return !contains(job.servers, x);
    return std::ranges::any_of(job.members, [&](const member_status& one) {
      return process_of(one.member) == process_of(x) && one.state == member_state::active;
    });
  });
}

} // namespace troupe
