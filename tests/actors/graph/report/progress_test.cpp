#include "actors/graph/report/progress.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace progress_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

progress_snapshot half_way() {
  progress_snapshot x;
  x.elapsed = 12'340ms;
  x.phase = job_phase::training;
  x.batches_done = 500;
  x.batches = 1000;
  x.epoch = 2.5;
  x.epochs = 5;
  x.loss = 0.25;
  x.measures = {{"accuracy", 0.971}};
  x.samples_per_second = 81'234;
  x.bytes_per_second = 412.5e6;
  x.staleness_mean = 2.25;
  x.staleness_max = 11;
  x.checkpoint = 3;
  x.processes = {{"server-0", member_state::active, false, 1, "version 500", 2e8, 84'000'000},
                 {"server-1", member_state::restoring, false, 2, "version 0", 0, 0},
                 {"worker-0", member_state::active, true, 1, "clock 120", 0, 0}};
  return x;
}

process_progress named(const std::string& name) {
  process_progress x;
  x.name = name;
  return x;
}

std::string without_sequences(const std::string& text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find_first_of("mAKJlh", i);
    else
      shown += text[i];
  }
  return shown;
}

struct close_file {
  void operator()(std::FILE* x) const { std::fclose(x); }
};

/// A stream that is no terminal, and the text that was written to it.
class captured {
public:
  captured() : file_(std::tmpfile()) { REQUIRE(file_); }
  std::FILE* file() const { return file_.get(); }
  std::string text() const {
    std::string all(static_cast<std::size_t>(std::ftell(file())), '\0');
    std::rewind(file());
    REQUIRE(std::fread(all.data(), 1, all.size(), file()) == all.size());
    return all;
  }

private:
  std::unique_ptr<std::FILE, close_file> file_;
};

} // namespace

TEST_CASE("render shows the bar, the figures and a line for each process") {
  const auto lines = render(half_way(), 120, false);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0]
        == "training  [" + std::string(20, '=') + ">" + std::string(19, ' ') + "]  50 %  12.3 s");
  CHECK(lines[1]
        == "epoch 2.50/5  loss 0.2500  accuracy 0.9710  81.2k samples/s  412.5 MB/s  "
           "staleness 2.2 (max 11)  checkpoint 3");
  CHECK(lines[2] == "  server-0  active     version 500       200.0 MB/s       84 MB");
  CHECK(lines[3] == "  server-1  restoring  version 0           0.0 MB/s  restarts 1");
  CHECK(lines[4] == "  worker-0  dead       clock 120           0.0 MB/s");
}

TEST_CASE("render shows the nodes of processes") {
  auto x = half_way();
  x.processes[0].node = x.processes[1].node = "model";
  x.processes[2].node = "learners";
  const auto lines = render(x, 120, false);
  CHECK(lines[2] == "  server-0  model     active     version 500       200.0 MB/s       84 MB");
  CHECK(lines[4] == "  worker-0  learners  dead       clock 120           0.0 MB/s");
}

TEST_CASE("render shows the measures of the evaluator in place of an accuracy that it has not") {
  auto x = half_way();
  x.measures = {{"rmse", 0.9384}, {"perplexity", 841.2}};
  CHECK(render(x, 200, false)[1].starts_with(
    "epoch 2.50/5  loss 0.2500  rmse 0.9384  perplexity 841.2000  81.2k samples/s"));
}

TEST_CASE("render is never wider than the screen") {
  for (const bool color : {false, true})
    for (unsigned columns = 1; columns < 130; ++columns)
      for (const std::string& line : render(half_way(), columns, color)) {
        CHECK(without_sequences(line).size() <= columns);
        CHECK(line.find('\n') == std::string::npos);
      }
}

TEST_CASE("render with colour shows the same text") {
  const auto plain = render(half_way(), 80, false);
  const auto colored = render(half_way(), 80, true);
  REQUIRE(plain.size() == colored.size());
  for (std::size_t i = 0; i < plain.size(); ++i)
    CHECK(without_sequences(colored[i]) == plain[i]);
  CHECK(colored.back().find("\x1b[31mdead") != std::string::npos);
}

TEST_CASE("render leaves out what is not known yet") {
  const auto lines = render({}, 80, false);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("gathering"));
  CHECK(lines[1].find("loss") == std::string::npos);
  CHECK(lines[1].find("accuracy") == std::string::npos);
  CHECK(lines[1].find("checkpoint") == std::string::npos);
}

TEST_CASE("render says who is missing while a job gathers, and no rates") {
  progress_snapshot x = half_way();
  x.phase = job_phase::gathering;
  x.batches_done = 0;
  CHECK(render_line(x) == "12.3 s gathering 0 %, waiting for worker 0, active members 1/3");
  x.processes[0].state = member_state::absent;
  CHECK(render(x, 80, false)[1] == "waiting for server 0, worker 0");
  x.processes.resize(2);
  x.processes[0].state = member_state::joining;
  CHECK(render(x, 80, false)[1] == "waiting for server 0 (joining), server 1 (restoring)");
  x.processes[0].state = x.processes[1].state = member_state::active;
  CHECK(render(x, 80, false)[1] == "all are there");
  x.processes.clear();
  CHECK(render(x, 80, false)[1] == "waiting for the coordinator");
  x.processes.resize(2, named("coordinator-0"));
  x.processes[0].dead = x.processes[1].dead = true;
  x.processes[0].is_coordinator = x.processes[1].is_coordinator = true;
  CHECK(render(x, 80, false)[1] == "waiting for the coordinator");
  x.processes.clear();
  x.processes.resize(12, named("worker-7"));
  CHECK(render_line(x).find("worker 7 (and 4 more), active") != std::string::npos);
}

TEST_CASE("render_line counts members that are done, and no coordinator") {
  progress_snapshot x = half_way();
  x.processes[1].state = member_state::finished;
  x.processes.push_back(named("coordinator-0"));
  x.processes.back().dead = x.processes.back().is_coordinator = true;
  CHECK(render_line(x).ends_with(", active members 2/3"));
}

TEST_CASE("render shows 100 % only when all is done") {
  progress_snapshot x = half_way();
  x.batches_done = 999;
  CHECK(render(x, 80, false)[0].find("] 99 %") == std::string::npos);
  CHECK(render(x, 80, false)[0].find("]  99 %") != std::string::npos);
  x.batches_done = 1000;
  CHECK(render(x, 80, false)[0].find("] 100 %") != std::string::npos);
}

TEST_CASE("progress_display writes at most one line per second where there is no terminal") {
  captured out;
  progress_display display{out.file(), false};
  progress_snapshot x = half_way();
  for (int tenth = 0; tenth <= 25; ++tenth) {
    x.elapsed = tenth * 100ms;
    display.show(x);
  }
  display.event("worker-0 died", 2500ms);
  x.phase = job_phase::finished; // A new phase is shown at once.
  display.show(x);
  display.finish();
  const std::string text = out.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("[   2.5 s] worker-0 died\n") != std::string::npos);
  CHECK(text.starts_with("0.0 s training 50 %, epoch 2.50/5, loss 0.2500, accuracy 0.9710, "));
  CHECK(text.find("active members 1/3\n") != std::string::npos);
}

TEST_CASE("progress_display keeps control characters of events off the screen") {
  captured out;
  progress_display display{out.file(), false};
  display.event("a\x1b[2Jb\nc\r", 0s);
  CHECK(out.text() == "[   0.0 s] a [2Jb c \n");
}

TEST_CASE("progress_display redraws its block in place") {
  captured out; // It has no size, so 80 columns are assumed.
  progress_display display{out.file(), true};
  display.show(half_way());
  const std::size_t rows = render(half_way(), 79, true).size();
  const std::string first = out.text();
  CHECK(std::count(first.begin(), first.end(), '\n') == static_cast<std::ptrdiff_t>(rows));
  CHECK_FALSE(first.starts_with("\x1b[" + std::to_string(rows) + "A"));

  display.show(half_way());
  const std::string second = out.text().substr(first.size());
  CHECK(second.starts_with("\x1b[" + std::to_string(rows) + "A\r"));
  CHECK(second.ends_with("\x1b[J\x1b[?7h"));
}

TEST_CASE("progress_display lets events scroll by above its block") {
  captured out;
  progress_display display{out.file(), true};
  display.show(half_way());
  const std::size_t before = out.text().size();
  display.event("server-1 was killed", 1s);
  const std::string text = without_sequences(out.text().substr(before));
  CHECK(text.starts_with("\r[   1.0 s] server-1 was killed\ntraining"));
}

TEST_CASE("progress_display never draws more lines than the screen has") {
  captured out;
  progress_display display{out.file(), true};
  progress_snapshot x = half_way();
  x.processes.resize(100);
  display.show(x);
  const std::string text = out.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 23);
  CHECK(text.find("  and 81 more") != std::string::npos);
}

TEST_CASE("progress_display forgets its block when it is finished") {
  captured out;
  progress_display display{out.file(), true};
  display.show(half_way());
  display.finish();
  const std::size_t before = out.text().size();
  display.event("done", 1s);
  CHECK(out.text().substr(before) == "[   1.0 s] done\x1b[K\n\x1b[J");
}

} // namespace progress_test
