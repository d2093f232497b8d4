#include "actors/graph/options/field_kinds.hpp"

#include "base/path_fault.hpp"
#include "base/quote.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace troupe {

// -- processes --

namespace {

result<void> refuse(std::string text) { return {errc::invalid_argument, std::move(text)}; }

/// Parses "learners:1". Returns nullopt if it is not a name with a number.
std::optional<named_process> parse_named(const char* option, const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon == 0)
    return std::nullopt;
  const auto index = number_from<std::uint32_t>(text.substr(colon + 1));
  if (!index)
    return std::nullopt;
  return named_process{option, text.substr(0, colon), *index, {}};
}

} // namespace

std::optional<role> role_named(std::string_view name) {
  for (const auto& row : role_rows)
    if (row.is_started && row.name == name)
      return row.role;
  return std::nullopt;
}

result<process_name> parse_process(const std::string& text) {
  const auto named = parse_named("", text);
  const auto as = named ? role_named(named->node) : std::nullopt;
  if (!as)
    return {errc::invalid_argument,
            quote(text) + " is not ROLE:INDEX, such as worker:1, server:0 or coordinator:0"};
  return process_name{*as, named->index};
}

void add_process(const named_process& what, role as, run_options& options) {
  const process_name who{as, what.index};
  if (what.option == "--here")
    options.here.push_back(who);
  else if (what.option == "--kill")
    options.kills.push_back({who, what.time});
  else
    options.slow_workers.emplace(what.index, what.time);
}

namespace {

/// Takes a process of --here, --kill or --slow, which has a role or the name of a node. `word`:
/// the whole value.
result<void> take_process(const char* option, const std::string& word, const std::string& process,
                          std::chrono::milliseconds time, const char* shape, run_options& options) {
  auto named = parse_named(option, process);
  if (!named)
    return refuse(quote(word) + " is not " + shape);
  named->time = time;
  if (const auto as = role_named(named->node))
    add_process(*named, *as, options);
  else
    options.by_node.push_back(*std::move(named));
  return {};
}

result<void> take_here(const std::string& word, run_options& options) {
  for (std::size_t begin = 0; begin <= word.size();) {
    const auto end = std::min(word.find(',', begin), word.size());
    const auto process = word.substr(begin, end - begin);
    if (auto taken = take_process("--here", process, process, {},
                                  "NAME:INDEX, such as worker:1, server:0 or learners:1", options);
        !taken)
      return taken;
    begin = end + 1;
  }
  return {};
}

result<void> take_slow(const std::string& word, run_options& options) {
  constexpr auto shape = "WORKER:MILLISECONDS, such as 2:50 or learners:2:50";
  const auto colon = word.rfind(':');
  const auto pause =
    colon == std::string::npos ? std::nullopt : number_from<std::uint32_t>(word.substr(colon + 1));
  auto worker = word.substr(0, colon);
  if (number_from<std::uint32_t>(worker))
    worker = "worker:" + worker;
  if (!pause
      || (role_named(worker.substr(0, worker.find(':'))).value_or(role::worker) != role::worker))
    return refuse(quote(word) + " is not " + shape);
  return take_process("--slow", word, worker, std::chrono::milliseconds{*pause}, shape, options);
}

result<void> take_kill(const std::string& word, run_options& options) {
  constexpr auto shape = "NAME:INDEX@SECONDS, such as worker:1@3 or learners:1@3";
  const auto at = word.find('@');
  const auto seconds =
    at == std::string::npos ? std::nullopt : number_from<double>(word.substr(at + 1));
  if (!seconds || !(*seconds >= 0) || *seconds > 1e7)
    return refuse(quote(word) + " is not " + shape);
  return take_process("--kill", word, word.substr(0, at),
                      std::chrono::milliseconds{std::llround(*seconds * 1000)}, shape, options);
}

/// Returns the processes that an option named, by role and then by node.
std::vector<named_process> named_by(const std::string& option, const run_options& options) {
  std::vector<named_process> all;
  const auto add = [&](const char* by, const process_name& who, std::chrono::milliseconds time) {
    if (option == by)
      all.push_back({option, std::string{traits_of(who.role).name}, who.index, time});
  };
  for (const auto& who : options.here)
    add("--here", who, {});
  for (const auto& plan : options.kills)
    add("--kill", plan.who, plan.after);
  for (const auto& [worker, pause] : options.slow_workers)
    add("--slow", {role::worker, worker}, pause);
  std::ranges::copy_if(options.by_node, std::back_inserter(all),
                       [&](const named_process& each) { return each.option == option; });
  return all;
}

template <class Take, class Print>
field_kind processes(const char* option, Take take, Print print) {
  return {.form = "TEXT", .repeats = true, .take = take, .print = [=](const run_options& options) {
            std::vector<std::string> words;
            std::ranges::transform(named_by(option, options), std::back_inserter(words), print);
            return fmt::format("{}", fmt::join(words, ","));
          }};
}

} // namespace

field_kind here_kind() {
  return processes("--here", take_here, [](const named_process& each) {
    return fmt::format("{}:{}", each.node, each.index);
  });
}

field_kind kills_kind() {
  return processes("--kill", take_kill, [](const named_process& each) {
    return fmt::format("{}:{}@{}", each.node, each.index,
                       std::chrono::duration<double>{each.time}.count());
  });
}

field_kind slow_kind() {
  return processes("--slow", take_slow, [](const named_process& each) {
    return fmt::format("{}:{}:{}", each.node, each.index, each.time.count());
  });
}

// -- times --

namespace {

using std::chrono::milliseconds;

constexpr milliseconds period_max{60'000'000'000'000};
constexpr std::uint64_t period_clocks_max = 1'000'000'000;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 3> units{
  {{"m", 60'000}, {"s", 1000}, {"ms", 1}}};

/// Prints a time in the largest unit of which it is a multiple.
std::string text_of(milliseconds time) {
  for (const auto& [name, scale] : units)
    if (time.count() % scale == 0)
      return fmt::format("{}{}", time.count() / scale, name);
  return {};
}

/// Refuses a time that is too long for a period, or negative.
result<void> check_time(milliseconds x) {
  if (x >= milliseconds{0} && x <= period_max)
    return {};
  return refuse(fmt::format("is {}, which is not from 0 to {}", x.count(), period_max.count()));
}

} // namespace

result<checkpoint_period> parse_checkpoint_period(const std::string& text) {
  if (text == "never")
    return checkpoint_period{};
  const auto unit_at = text.find_first_not_of("0123456789.");
  const auto unit = unit_at == std::string::npos ? std::string{} : text.substr(unit_at);
  const auto value = number_from<double>(text.substr(0, unit_at));
  const auto fits = [&](std::int64_t scale, double greatest) {
    return value && *value > 0 && *value * static_cast<double>(scale) <= greatest;
  };
  const auto rounded = [&](std::int64_t scale) {
    return std::max(std::llround(*value * static_cast<double>(scale)), 1ll); // 0 would mean never.
  };
  for (const auto& [name, scale] : units)
    if (unit == name && fits(scale, static_cast<double>(period_max.count())))
      return checkpoint_period{milliseconds{rounded(scale)}, 0};
  if (unit == "clocks" && fits(1, static_cast<double>(period_clocks_max)))
    return checkpoint_period{{}, static_cast<std::uint64_t>(rounded(1))};
  if (unit == "k" && value) // Which many would read as a thousand.
    return {errc::invalid_argument,
            quote(text) + ": write clocks as " + text.substr(0, unit_at) + "clocks"};
  return {errc::invalid_argument, quote(text)
                                    + " is not a period: a number with ms, s or m (time) or "
                                      "clocks, such as 2s or 200clocks"};
}

result<milliseconds> parse_scrub_interval(const std::string& text) {
  if (text == "off")
    return milliseconds{0};
  const auto period = parse_checkpoint_period(text);
  if (!period || period->interval == milliseconds{0})
    return {errc::invalid_argument,
            quote(text) + " is neither a time with ms, s or m, such as 10m, nor off"};
  return period->interval;
}

field_kind period_kind() {
  return {.form = "TEXT",
          .holder = holder::checkpoints,
          .take = [](const std::string& word, run_options& into) -> result<void> {
            const auto period = parse_checkpoint_period(word);
            if (!period)
              return period.error();
            into.servers.checkpoints.interval = period->interval;
            into.servers.checkpoints.clocks = period->clocks;
            return {};
          },
          .print = [](const run_options& x) -> std::string {
            const auto& [interval, clocks, keep] = x.servers.checkpoints;
            if (clocks > 0) // Then the interval does not count.
              return fmt::format("{}clocks", clocks);
            return interval == milliseconds{0} ? "never" : text_of(interval);
          },
          .check = [](const run_options& x) -> result<void> {
            if (x.servers.checkpoints.clocks > period_clocks_max)
              return refuse(fmt::format("has {} clocks, which is not from 0 to {}",
                                        x.servers.checkpoints.clocks, period_clocks_max));
            return check_time(x.servers.checkpoints.interval);
          }};
}

field_kind scrub_kind() {
  auto made = text(at(&servers::scrub_interval), parse_scrub_interval, [](milliseconds x) {
    return x == milliseconds{0} ? std::string{"off"} : text_of(x);
  });
  made.check = [](const run_options& x) { return check_time(x.servers.scrub_interval); };
  return held_by(holder::checkpoints, std::move(made));
}

result<double> parse_seconds(const std::string& word) {
  return number_in(word, 0.0, std::numeric_limits<double>::max(), "from 0 on");
}

// -- modes and measures --

namespace {

/// The measures by growing force. "off" is not a measure.
constexpr std::array<std::pair<std::string_view, straggler_measure>, 4> measures{{
  {"warn", straggler_measure::warned},
  {"rebalance", straggler_measure::rebalanced},
  {"demote", straggler_measure::demoted},
  {"evict", straggler_measure::evicted},
}};

result<std::optional<straggler_measure>> parse_measure(const std::string& word) {
  const auto* const found =
    std::ranges::find(measures, word, &decltype(measures)::value_type::first);
  if (found == measures.end() && word != "off")
    return {errc::invalid_argument,
            quote(word) + " is none of off, warn, rebalance, demote, evict"};
  return found == measures.end() ? std::nullopt : std::optional{found->second};
}

std::string name_of_measure(const std::optional<straggler_measure>& x) {
  const auto* const found =
    std::ranges::find_if(measures, [&](const auto& each) { return x == each.second; });
  return found == measures.end() ? "off" : std::string{found->first};
}

} // namespace

field_kind measure_kind() { return text(at(&workers::stragglers), parse_measure, name_of_measure); }

field_kind sync_kind() {
  return {.form = "TEXT",
          .holder = holder::sync,
          .take = [](const std::string& word, run_options& into) -> result<void> {
            std::string words;
            for (const auto* const each : all_store_rules()) {
              if (!each->sync_word.empty() && each->sync_word == word) {
                into.chosen_store = each;
                into.sync = each->sync;
                return {};
              }
              if (!each->sync_word.empty())
                words += fmt::format("; or {}, without servers", each->sync_word);
            }
            const auto read = parse_consistency(word);
            if (!read)
              return refuse(read.error().text + words);
            into.chosen_store = &rules_of_servers;
            into.sync = *read;
            return {};
          },
          .print =
            [](const run_options& x) {
              const auto word = x.rules().sync_word;
              return word.empty() ? to_string(x.sync) : std::string{word};
            }};
}

result<read_target> parse_read_target(const std::string& word) {
  if (word == "head" || word == "any")
    return word == "head" ? read_target::head : read_target::any;
  return {errc::invalid_argument, "reads go to head or any, not to '" + word + "'"};
}

std::string to_string(read_target x) { return x == read_target::head ? "head" : "any"; }

// -- encodings --

namespace {

result<void> take_pushes(const std::string& word, run_options& options) {
  const auto equals = word.find('=');
  const bool names_table = equals != std::string::npos;
  const auto read = parse_compression(names_table ? word.substr(equals + 1) : word);
  if (!read)
    return read.error();
  const auto table = names_table ? word.substr(0, equals) : std::string{};
  if (names_table && table.empty())
    return refuse(quote(word) + " names no table before the =");
  if (!options.codec.pushes.emplace(table, *read).second)
    return refuse(table.empty() ? "only one may be for all tables"
                                : "table '" + table + "' is named twice");
  return {};
}

result<encoding> parse_pulls(const std::string& word) {
  return word == to_string(encoding::f32) ? encoding::f32 : parse_pull_encoding(word);
}

} // namespace

field_kind pushes_kind() {
  return {.form = "TEXT",
          .repeats = true,
          .holder = holder::codec,
          .take = take_pushes,
          .print =
            [](const run_options& x) {
              std::vector<std::string> words;
              for (const auto& [table, how] : x.codec.pushes)
                words.push_back((table.empty() ? "" : table + "=") + to_string(how));
              return fmt::format("{}", fmt::join(words, ","));
            },
          .check = [](const run_options& x) -> result<void> {
            for (const auto& [table, how] : x.codec.pushes)
              if ((how.how == encoding::topk || how.how == encoding::randomk)
                  && !(how.fraction > 0 && how.fraction <= 1))
                return refuse(fmt::format("has {}, which sends a share of the elements that is not "
                                          "above 0 and at most 1",
                                          to_string(how)));
            return {};
          }};
}

field_kind pulls_kind() {
  auto made = text(at(&compress::pulls), parse_pulls);
  made.check = [](const run_options& x) -> result<void> {
    if (x.codec.pulls <= encoding::int8)
      return {};
    return refuse(fmt::format("is {}, which cannot have whole values: use f32, fp16, bf16 or int8",
                              to_string(x.codec.pulls)));
  };
  return made;
}

// -- files and addresses --

result<std::string> parse_path(const std::string& word) {
  if (auto wrong = path_fault(word); !wrong.empty())
    return {errc::invalid_argument, std::move(wrong)};
  return word;
}

std::string url_of(const storage::etcd_address& x) {
  std::vector<std::string> members;
  for (const auto& each : x.endpoints)
    members.push_back(to_string(each));
  return fmt::format("etcd://{}{}{}", fmt::join(members, ","), x.job.empty() ? "" : "/", x.job);
}

} // namespace troupe
