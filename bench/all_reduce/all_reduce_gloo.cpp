// Runs Gloo's all-reduce over TCP in place, as a contestant of all_reduce.py.
//
//   all_reduce_gloo --ranks N --sizes BYTES,... --algorithm ring_chunked|halving_doubling
//
// Ranks are processes, which find each other by files in a temporary folder.
#include "bench/all_reduce/all_reduce_loop.hpp"
#include "bench/all_reduce/all_reduce_processes.hpp"

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <filesystem>
#include <map>
#include <memory>

namespace {

using namespace troupe;

void run_rank(bench::all_reduce_options options, std::size_t rank, const std::string& folder,
              bool ring) {
  options.rank = rank;
  gloo::rendezvous::FileStore store{folder};
  const auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank),
                                                                   static_cast<int>(options.ranks));
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  context->connectFullMesh(store, device);
  std::vector<float> numbers(std::ranges::max(options.sizes) / sizeof(float) + 16);
  // An algorithm keeps its buffers for life, and is bound to numbers at one place.
  std::map<std::size_t, std::unique_ptr<gloo::Algorithm>> made;
  bench::all_reduce_loop(options, numbers, [&](std::span<float> part) {
    const bool flag = part.size() == 1;
    float* place = flag ? &numbers.back() : part.data();
    auto& algorithm = made[part.size()];
    const auto count = static_cast<int>(part.size());
    const std::vector<float*> places{place};
    if (!algorithm && ring)
      algorithm = std::make_unique<gloo::AllreduceRingChunked<float>>(context, places, count);
    else if (!algorithm)
      algorithm = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, places, count);
    if (flag)
      *place = part[0];
    algorithm->run();
    if (flag)
      part[0] = *place;
  });
}

} // namespace

int main(int argc, char** argv) {
  bench::all_reduce_options options;
  std::string algorithm = "ring_chunked";
  CLI::App app{"Adds up with Gloo, as a contestant of all_reduce.py", "all_reduce_gloo"};
  bench::add_options(app, options);
  app.add_option("--algorithm", algorithm)
    ->check(CLI::IsMember({"ring_chunked", "halving_doubling"}));
  CLI11_PARSE(app, argc, argv);
  options.contestant = "gloo-" + algorithm;
  options.ranks_are = "processes";
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-gloo-XXXXXX").string();
  const std::string folder = mkdtemp(pattern.data());
  const int status = bench::in_processes(options.ranks, [&](std::size_t rank) {
    run_rank(options, rank, folder, algorithm == "ring_chunked");
  });
  std::filesystem::remove_all(folder);
  return status;
}
