#include "actors/graph/run.hpp"

#include "actors/graph/launch/import.hpp"
#include "actors/graph/launch/launcher.hpp"
#include "actors/graph/launch/local_backend.hpp"
#include "actors/graph/plan.hpp"

#include "fmt/format.h"

namespace troupe {

namespace {

/// Adds the options that a run without processes refuses, as if a command line had given them.
void note_given(run_options& options) {
  const auto note_if = [&](bool is_given, const char* name) {
    if (is_given)
      options.given.insert(name);
  };
  note_if(!options.kills.empty(), "--kill");
  note_if(!options.here.empty(), "--here");
  note_if(options.listen.has_value(), "--listen");
  note_if(options.join.has_value(), "--join");
  note_if(options.etcd.has_value(), "--coordinator-store");
  note_if(!options.run_directory.empty(), "--run-dir");
  note_if(options.checkpoint_directory.has_value(), "--checkpoint");
  note_if(options.resume, "--resume");
  note_if(options.import_file.has_value(), "--import");
}

failure refusal(const std::string& text) { return {errc::invalid_argument, text}; }

} // namespace

result<report> run(const graph& described, const settings& how) {
  auto options = how.options;
  if (!options.asked_mode)
    options.asked_mode = run_mode::threads;
  if (options.asked_mode == run_mode::processes)
    return refusal("run() starts no processes: ask for run_mode::threads or run_mode::simulation");
  if (options.replay_directory)
    return refusal("run() replays no record: use the command line of a program");
  note_given(options);
  if (auto valid = validate_without_graph(options); !valid)
    return valid.error();
  auto made = lower(how.name, described, options, how.functions);
  if (!made)
    return made.error();
  if (made->rules().has_ranks)
    return refusal(fmt::format("{} is an {}, which needs processes: use servers", made->store_name,
                               made->rules().text(*made)));
  if (auto read = read_files(*made); !read)
    return read.error();
  return run_inside(*made, how.log,
                    made->options.mode() == run_mode::simulation ? make_simulated_backend
                                                                 : make_thread_backend);
}

} // namespace troupe
