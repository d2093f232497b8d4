#include "bench/kills/kill_traffic.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe::bench {

namespace {

constexpr std::array<std::uint64_t, 7> sizes_floats{1,       16,      1 << 10, 16 << 10,
                                                    1 << 16, 1 << 18, 1 << 20};
/// Pieces begin at any of this many elements, so that the pieces of two requests differ.
constexpr std::uint64_t firsts = 64;

} // namespace

traffic_source::traffic_source(std::uint64_t seed)
    : dice_(seed),
      pattern_(new float[sizes_floats.back() + firsts], std::default_delete<float[]>{}) {
  for (std::uint64_t i = 0; i < sizes_floats.back() + firsts; ++i)
    pattern_.get()[i] = static_cast<float>(i % 8191);
}

range traffic_source::draw() {
  return {{0}, dice_() % firsts, sizes_floats[dice_() % sizes_floats.size()]};
}

request traffic_source::next() {
  request made;
  made.push.emplace();
  made.push->tables = {{0}};
  const auto brought = draw();
  made.push->pieces = {{brought, {pattern_, pattern_.get() + brought.first}}};
  made.pull.emplace();
  made.pull->ranges = {draw()};
  return made;
}

reply traffic_source::answer(const request& what) const {
  reply made{push_reply{}, pull_reply{}};
  for (const auto& where : what.pull->ranges)
    made.pulled->pieces.push_back({where, {pattern_, pattern_.get() + where.first}});
  return made;
}

bool traffic_source::right(const std::vector<piece>& pieces) const {
  return !pieces.empty() && std::ranges::all_of(pieces, [this](const piece& x) {
    return x.where.first < firsts && x.where.count <= sizes_floats.back()
           && std::memcmp(x.values.get(), pattern_.get() + x.where.first,
                          x.where.count * sizeof(float))
                == 0;
  });
}

bool traffic_source::right(const request& asked, const reply& answer) const {
  return answer.pulled && answer.pulled->pieces.size() == asked.pull->ranges.size()
         && answer.pulled->pieces[0].where == asked.pull->ranges[0] && right(answer.pulled->pieces);
}

endings& endings::operator+=(const endings& more) {
  sent += more.sent;
  answered += more.answered;
  failed += more.failed;
  stalled += more.stalled;
  doubled += more.doubled;
  corrupt += more.corrupt;
  astray += more.astray;
  return *this;
}

} // namespace troupe::bench
