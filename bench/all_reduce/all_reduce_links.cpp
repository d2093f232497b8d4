// Adds up over links, as a contestant of all_reduce.py.
//
//   all_reduce_links --way arena|tcp --ranks N --sizes BYTES,...
//
// Ranks are processes of this host. arena: links as they are by default on one host. tcp: links as
// between hosts.
#include "actors/graph/ranks/link_communicator.hpp"
#include "bench/all_reduce/all_reduce_loop.hpp"
#include "bench/all_reduce/all_reduce_processes.hpp"
#include "serialization/wire.hpp"

namespace {

using namespace troupe;

[[noreturn]] void give_up(const failure& why) {
  std::fprintf(stderr, "%s\n", why.text.c_str());
  std::_Exit(1);
}

} // namespace

int main(int argc, char** argv) {
  bench::all_reduce_options options;
  std::string way = "arena";
  CLI::App app{"Adds up over Troupe's links, as a contestant of all_reduce.py", "all_reduce_links"};
  bench::add_options(app, options);
  app.add_option("--way", way)->check(CLI::IsMember({"arena", "tcp"}));
  CLI11_PARSE(app, argc, argv);
  options.contestant = "troupe-links-" + way;
  options.ranks_are = "processes";
  link_communicator_options how;
  how.links.unix_sockets = way == "arena";
  std::vector<int> listeners;
  std::vector<endpoint> addresses;
  for (std::size_t rank = 0; rank < options.ranks; ++rank) {
    const auto listener = make_listener({"127.0.0.1", 0});
    if (!listener)
      give_up(listener.error());
    listeners.push_back(*listener);
    addresses.push_back(*local_endpoint(*listener));
  }
  return bench::in_processes(options.ranks, [&](std::size_t rank) {
    options.rank = rank;
    const auto self = static_cast<std::uint32_t>(rank);
    auto communicator =
      form_link_communicator({wire::protocol_version, 1, 1, {role::worker, self, {self + 1}}},
                             addresses, listeners[rank], how);
    if (!communicator)
      give_up(communicator.error());
    std::vector<float> numbers(std::ranges::max(options.sizes) / sizeof(float) + 16);
    bench::all_reduce_loop(options, numbers, [&](std::span<float> part) {
      if (const auto summed = (*communicator)->sum(part); !summed)
        give_up(summed.error());
    });
  });
}
