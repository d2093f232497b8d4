#include "actors/graph/launch/slow_calls.hpp"

#include "base/system/named_thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds calls_interval{500};
/// Others wait for a member that holds values, and suspect it sooner.
constexpr std::chrono::seconds patience_of_holders{4}, patience_of_others{10};

} // namespace

std::vector<std::string> slow_calls::look(const std::vector<open_call>& open, time_point now) {
  std::erase_if(seen_, [&](const auto& x) {
    return std::ranges::find(open, x.first, &open_call::number) == open.end();
  });
  looked_at_ = now;
  std::vector<std::string> lines;
  for (const auto& call : open) {
    auto& seen = seen_.try_emplace(call.number, call.name, now).first->second;
    if (now - seen.since >= patience_ && !std::exchange(seen.is_told, true))
      lines.push_back(seen.name + " has not returned for " + std::to_string(patience_.count())
                      + " s");
  }
  return lines;
}

std::optional<std::string> slow_calls::longest(time_point least) const {
  const auto found =
    std::ranges::min_element(seen_, {}, [](const auto& each) { return each.second.since; });
  if (found == seen_.end() || looked_at_ - found->second.since < least)
    return std::nullopt;
  return found->second.name;
}

void tell_slow_calls(process_name self, notice_sink waits, log_sink log,
                     std::function<void()> each_look) {
  const auto patience =
    traits_of(self.role).holds_values ? patience_of_holders : patience_of_others;
  detail::named_thread("troupe-calls", [own = to_string(self) + "'s ", waits = std::move(waits),
                                        log = std::move(log), each_look = std::move(each_look),
                                        patience] {
    slow_calls calls{patience};
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock{mutex};
    for (bool is_told = false;; never.wait_for(lock, calls_interval)) {
      for (auto& line : calls.look(open_calls(), steady_now())) {
        if (line.starts_with(own))
          line.replace(0, own.size(), "the ");
        log(log_level::warn, line);
        waits({log_level::warn, "call", {}, line});
        is_told = true;
      }
      if (is_told && !calls.longest(patience)) {
        waits({log_level::warn, "call", {}, ""});
        is_told = false;
      }
      each_look();
    }
  }).detach();
}

} // namespace troupe
