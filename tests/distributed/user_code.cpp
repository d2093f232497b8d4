// Fits a line with user code that ends its process, or starts others: what `--does` says happens in
// gradient(), after `--after` results.
#undef NDEBUG // Its assertions are tested.
#include "troupe/troupe.hpp"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <locale>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

struct settings {
  std::string does = "nothing";
  std::uint64_t loads_ms = 0, after = 0;
  double rate = 0.5;
};

/// Returns the output of a shell command.
std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr)
    throw std::runtime_error{"no popen"};
  char some[4096] = {};
  const auto got = fread(some, 1, sizeof some - 1, pipe);
  std::this_thread::sleep_for(std::chrono::milliseconds{100}); // It has ended, and waits for this.
  const int status = pclose(pipe);
  return std::string{some, got} + "status " + std::to_string(status);
}

const char* const signals_of_a_child =
  "grep -E '^Sig(Blk|Ign)' /proc/self/status; sh -c 'kill -TERM $$; echo lives'; true";

void do_as_told(const settings& chosen) {
  const auto& does = chosen.does;
  if (does == "exit")
    std::exit(static_cast<int>(chosen.rate));
  if (does == "abort")
    std::abort();
  if (does == "assert")
    assert(does == "nothing");
  if (does == "kill")
    raise(SIGKILL);
  if (does == "segv")
    raise(SIGSEGV);
  if (does == "terminate")
    std::thread{[] { throw std::runtime_error{"thrown in a thread"}; }}.join();
  if (does == "child")
    throw std::runtime_error{output_of(signals_of_a_child)};
}

struct line_trainer final : troupe::trainer {
  explicit line_trainer(settings from) : chosen(std::move(from)) {
    std::this_thread::sleep_for(std::chrono::milliseconds{chosen.loads_ms});
  }

  double gradient(const troupe::batch& work, troupe::const_tensors line,
                  troupe::mutable_tensors gradients) override {
    if (results++ == chosen.after)
      do_as_told(chosen);
    const auto error = line[0][0] - static_cast<float>(chosen.rate);
    gradients[0][0] = error / static_cast<float>(work.samples.size());
    return error * error;
  }

  settings chosen;
  std::uint64_t results = 0;
};

/// Has a child as soon as static objects are made.
const std::string early = getenv("USER_CODE_EARLY") ? output_of(signals_of_a_child) : "";

} // namespace

int main(int argc, char** argv) {
  if (!early.empty())
    fprintf(stderr, "%s\n", early.c_str());
  if (const char* const name = getenv("USER_CODE_LOCALE"))
    if (setlocale(LC_ALL, name) == nullptr)
      return 77;
  if (const char* const name = getenv("USER_CODE_STREAMS"))
    std::locale::global(std::locale{name});
  settings chosen;
  troupe::program program{"user_code", "Has user code that misbehaves."};
  program.option("--does", chosen.does, "What gradient() does",
                 {"nothing", "exit", "abort", "assert", "kill", "segv", "terminate", "child"});
  program.option("--after", chosen.after, "Results of a trainer before it does so");
  program.option("--loads", chosen.loads_ms, "Milliseconds that the trainer's constructor takes");
  program.option("--rate", chosen.rate, "The value that is fitted; the status of exit()", 0, 100);
  return program.run(argc, argv, [&](const auto& options) {
    troupe::graph g;
    auto model = g.add("model", options.store({{.name = "line", .shape = {1}}}));
    g.add("learners",
          options.workers_of(2'000, [chosen] { return std::make_unique<line_trainer>(chosen); }))
      .into(options.stages(), model);
    return g;
  });
}
