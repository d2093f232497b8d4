// Measures a server's sparse tables on one thread: pushes and pulls of random keys.
//
//   sparse_bench [--full] [--json] [--keys N] [--rows N]
//
// A call pushes or pulls the rows of `keys` keys (10^5) of a table that holds `rows` rows (10^6),
// other keys each time. index_share is the time of the look-ups alone, as a share of that of the
// whole call. The default is a smoke run with a tenth of both and few rounds.
#include "actors/tables/sparse_store.hpp"
#include "bench/store/random_keys.hpp"

#include "CLI/CLI.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace troupe;

struct options {
  std::uint64_t keys = 10'000;
  std::uint64_t rows = 100'000;
  std::size_t rounds = 5;
  bool json = false;
};

struct spread {
  double median, min, max;
};

spread spread_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

struct row {
  const char* optimizer;
  std::uint32_t width;
  spread push, pull; ///< Million keys a second.
  double index_share_push, index_share_pull;
  double checksum;
};

/// Returns CPU time of this thread, so that other programs on the machine do not count.
double seconds_of(const std::function<void()>& body) {
  const auto now = [] {
    timespec at{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
  };
  const double start = now();
  body();
  return now() - start;
}

job_spec job_of(std::uint32_t width, optimizer_kind kind) {
  job_spec job;
  job.samples = 1;
  job.tables.resize(1);
  job.tables[0].name = "rows";
  job.tables[0].kind = table_kind::sparse;
  job.tables[0].width = width;
  job.tables[0].optimizer.kind = kind;
  job.tables[0].init = {initializer_kind::uniform, 0.1f};
  return job;
}

row measure(const options& how, std::uint32_t width, optimizer_kind kind) {
  const job_spec job = job_of(width, kind);
  std::vector<partition_id> all;
  for (std::uint32_t p = 0; p < job.partitions; ++p)
    all.push_back({p});
  const auto pool = std::make_shared<buffer_pool>();
  sparse_store store{job, all, pool};
  key_index index{
    std::make_shared<huge_page_pool>()}; // All rows in one: the look-ups without the rest.
  const auto gradient = pool->floats(how.rows * width);
  std::fill_n(gradient.get(), how.rows * width, 1e-3f);
  const apply_effect effect{.tables = {{0}}, .skip = {}};
  const auto push = [&](const row_keys& keys) {
    const row_piece piece{keys, gradient};
    const row_push pushes[] = {{{0}, 1.0f, {&piece, 1}}};
    if (!store.check(pushes[0].rows) || !store.add_up(effect, pushes))
      std::abort();
    store.step(effect);
  };
  double checksum = 0;
  const auto pull = [&](const row_keys& keys) {
    if (!store.check(std::span{&keys, 1}))
      std::abort();
    checksum += static_cast<double>(store.read(keys, false).values.get()[0]);
  };
  for (std::uint64_t i = 0; i < how.rows; ++i)
    index.find_or_add(row_hash(i) * 3, row_hash(row_hash(i) * 3));
  for (std::uint64_t round = 0; store.size() < how.rows - how.rows / 1000; ++round)
    push(bench::random_keys(width, how.rows, how.rows / 2, round + 1000));

  std::vector<double> pushes, pulls, looks;
  for (std::uint64_t round = 0; round < how.rounds; ++round) {
    const row_keys keys = bench::random_keys(width, how.rows, how.keys, round);
    const auto count = static_cast<double>(keys.count);
    pushes.push_back(count / seconds_of([&] { push(keys); }) * 1e-6);
    pulls.push_back(count / seconds_of([&] { pull(keys); }) * 1e-6);
    looks.push_back(count / seconds_of([&] {
                      constexpr std::size_t ahead = 32;
                      const auto list = keys.span();
                      for (std::size_t i = 0; i < list.size(); ++i) {
                        if (i + ahead < list.size())
                          index.prefetch(row_hash(list[i + ahead]));
                        checksum += index.find(list[i], row_hash(list[i]));
                      }
                    })
                    * 1e-6);
  }
  const spread push_speed = spread_of(pushes), pull_speed = spread_of(pulls);
  const double look_speed = spread_of(looks).median;
  return {to_string(kind),
          width,
          push_speed,
          pull_speed,
          push_speed.median / look_speed,
          pull_speed.median / look_speed,
          checksum};
}

void print(const std::vector<row>& rows, const options& how) {
  if (!how.json)
    std::printf("%-9s %5s  %-22s %11s  %-22s %11s\n", "optimizer", "width", "push, M keys/s",
                "index share", "pull, M keys/s", "index share");
  std::printf("%s", how.json ? "[" : "");
  const char* separator = "";
  for (const row& r : rows) {
    if (how.json)
      std::printf("%s\n  {\"optimizer\": \"%s\", \"width\": %u, \"keys\": %llu, \"rows\": %llu, "
                  "\"push_mkeys_per_s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}, "
                  "\"pull_mkeys_per_s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}, "
                  "\"index_share_push\": %.3f, \"index_share_pull\": %.3f, \"checksum\": %.9g}",
                  separator, r.optimizer, r.width, static_cast<unsigned long long>(how.keys),
                  static_cast<unsigned long long>(how.rows), r.push.median, r.push.min, r.push.max,
                  r.pull.median, r.pull.min, r.pull.max, r.index_share_push, r.index_share_pull,
                  r.checksum);
    else
      std::printf("%-9s %5u  %5.1f (%5.1f..%5.1f)   %9.0f %%  %5.1f (%5.1f..%5.1f)   %9.0f %%\n",
                  r.optimizer, r.width, r.push.median, r.push.min, r.push.max,
                  100 * r.index_share_push, r.pull.median, r.pull.min, r.pull.max,
                  100 * r.index_share_pull);
    separator = ",";
  }
  std::printf("%s", how.json ? "\n]\n" : "");
}

} // namespace

int main(int argc, char** argv) {
  options how;
  bool full = false;
  CLI::App app{"Speed of a server's sparse tables on one thread: pushes and pulls of random keys",
               "sparse_bench"};
  const auto* const keys =
    app.add_option("--keys", how.keys, "Of a call")->check(CLI::Range(1, 100'000'000));
  const auto* const rows_held =
    app.add_option("--rows", how.rows, "Of the table")->check(CLI::Range(1, 100'000'000));
  app.add_flag("--full", full, "31 rounds, and ten times as many keys and rows where not said");
  app.add_flag("--json", how.json);
  CLI11_PARSE(app, argc, argv);
  if (full) {
    how.rounds = 31;
    how.keys *= keys->count() == 0 ? 10 : 1;
    how.rows *= rows_held->count() == 0 ? 10 : 1;
  }
  std::vector<row> rows;
  for (const std::uint32_t width : {1u, 16u, 64u})
    for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adagrad, optimizer_kind::adam})
      rows.push_back(measure(how, width, kind));
  print(rows, how);
}
