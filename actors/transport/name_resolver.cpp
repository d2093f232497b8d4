#include "actors/transport/name_resolver.hpp"

#include "base/system/named_thread.hpp"

#include <cstdint>
#include <utility>

namespace troupe::detail {

namespace {

name_resolver::addresses with_port(name_resolver::addresses found, std::uint16_t port) {
  if (found)
    for (auto& each : *found)
      set_port(each, port);
  return found;
}

} // namespace

name_resolver::name_resolver(std::function<addresses(const endpoint&)> look_up)
    : look_up_(std::move(look_up)) {}

void name_resolver::ask(const endpoint& where, answer tell) {
  const std::scoped_lock lock{mutex_};
  if (stopping_)
    return;
  if (!thread_.joinable())
    thread_ = named_thread("troupe-names", [this] { run(); });
  waiting_.push_back({where, std::move(tell)});
  changed_.notify_one();
}

void name_resolver::stop() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_one();
  if (thread_.joinable())
    thread_.join();
}

void name_resolver::run() {
  for (;;) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_)
      return;
    const endpoint where = waiting_.front().where;
    lock.unlock();
    const addresses found = look_up_(where);
    for (const question& each : take(where.host))
      each.tell(with_port(found, each.where.port));
  }
}

/// Removes and returns the questions about `host` so far.
std::vector<name_resolver::question> name_resolver::take(const std::string& host) {
  const std::scoped_lock lock{mutex_};
  std::vector<question> taken;
  std::erase_if(waiting_, [&](question& each) {
    if (each.where.host != host)
      return false;
    taken.push_back(std::move(each));
    return true;
  });
  return taken;
}

} // namespace troupe::detail
