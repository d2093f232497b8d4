#include "storage/job_difference.hpp"

#include "base/quote.hpp"
#include "storage/tensor_file.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace troupe::storage {

namespace {

std::string shape_of(const table_spec& table) {
  if (table.is_sparse())
    return "sparse with rows of " + std::to_string(table.width);
  return shape_text(table.shape);
}

std::string both(const std::string& there, const std::string& here) {
  return " is " + there + " there and " + here + " here";
}

const table_spec* find(const job_spec& job, const std::string& name) {
  const auto found = std::find_if(job.tables.begin(), job.tables.end(),
                                  [&](const table_spec& table) { return table.name == name; });
  return found == job.tables.end() ? nullptr : &*found;
}

/// Describes two tables whose first values differ.
std::string values_difference(const std::string& name, const table_spec& there,
                              const table_spec& here) {
  if (there.values_checksum != 0 && here.values_checksum != 0)
    return "the file of " + name + " has other values there and here";
  const auto text = [](const table_spec& x) {
    return x.values_checksum != 0 ? "from a file" : "from its initializer";
  };
  return "the first values of " + name + " are " + text(there) + " there and " + text(here)
         + " here";
}

/// Returns the first difference; empty if the tables agree.
std::string table_difference(const job_spec& there, const job_spec& here) {
  for (const auto& mine : here.tables) {
    const auto* other = find(there, mine.name);
    const auto name = "table " + troupe::quote(mine.name);
    if (other == nullptr)
      return name + " is not in it";
    if (shape_of(*other) != shape_of(mine))
      return name + both(shape_of(*other), shape_of(mine));
    if (other->frozen != mine.frozen)
      return name + both(other->frozen ? "frozen" : "trained", mine.frozen ? "frozen" : "trained");
    if (other->values_checksum != mine.values_checksum)
      return values_difference(name, *other, mine);
    if (other->optimizer.name() != mine.optimizer.name())
      return "the optimizer of " + name + both(other->optimizer.name(), mine.optimizer.name());
    if (other->optimizer.parameters != mine.optimizer.parameters)
      return "the function '" + mine.optimizer.function + "' of " + name
             + " has other parameters there and here";
    if (other->optimizer.function_state != mine.optimizer.function_state)
      return "the state of '" + mine.optimizer.function + "' of " + name
             + both(std::to_string(other->optimizer.function_state) + " floats a weight",
                    std::to_string(mine.optimizer.function_state));
  }
  for (const auto& other : there.tables)
    if (find(here, other.name) == nullptr)
      return "its table " + troupe::quote(other.name) + " is not in this job";
  for (std::size_t i = 0; i < here.tables.size(); ++i)
    if (there.tables[i].name != here.tables[i].name)
      return "table " + std::to_string(i)
             + both(troupe::quote(there.tables[i].name), troupe::quote(here.tables[i].name));
  return {};
}

/// Splits a name "program on data" (graph::dataset_id) at the data.
std::pair<std::string, std::string> program_and_data(const std::string& name) {
  constexpr std::string_view between = " on ";
  const auto at = name.find(between);
  if (at == std::string::npos)
    return {name, "none"};
  return {name.substr(0, at), name.substr(at + between.size())};
}

std::string files_difference(const job_spec& there, const job_spec& here) {
  if (there.files_checksum != 0 && here.files_checksum != 0)
    return "data set: the files that the program reads have other bytes there and here";
  const auto text = [](const job_spec& x) {
    return x.files_checksum != 0 ? "read from files" : "not read from a file";
  };
  return std::string{"data set: it"} + both(text(there), text(here));
}

const own_option* find_option(const job_spec& job, const std::string& name) {
  const auto found = std::ranges::find(job.own_options, name, &own_option::name);
  return found == job.own_options.end() ? nullptr : &*found;
}

std::string quoted_value(const own_option& option) {
  constexpr std::size_t shown_max = 200; // quote() would cut most paths.
  return "'" + printable(option.value, shown_max) + "'";
}

} // namespace

std::string job_difference(const job_spec& there, const job_spec& here) {
  if (const auto difference = table_difference(there, here); !difference.empty())
    return "model: " + difference;
  if (there.name != here.name) {
    const auto [program, data] = program_and_data(here.name);
    const auto [other_program, other_data] = program_and_data(there.name);
    if (program == other_program)
      return "data set: it" + both(troupe::quote(other_data), troupe::quote(data))
             + ": the files, or the options that read them, differ";
    return "job: it" + both(troupe::quote(there.name), troupe::quote(here.name));
  }
  if (there.files_checksum != here.files_checksum)
    return files_difference(there, here);
  const auto differ = [](const std::string& what, std::uint64_t other, std::uint64_t mine) {
    return "job: the " + what + both(std::to_string(other), std::to_string(mine));
  };
  if (there.seed != here.seed)
    return differ("seed", there.seed, here.seed);
  if (there.own_store != here.own_store)
    return std::string{"store: it"}
           + both(there.own_store ? "an own store" : "made of servers",
                  here.own_store ? "an own store" : "made of servers");
  if (there.partitions != here.partitions)
    return differ("number of partitions", there.partitions, here.partitions);
  if (there.batch_samples != here.batch_samples)
    return differ("batch size", there.batch_samples, here.batch_samples);
  if (there.samples != here.samples)
    return differ("number of samples", there.samples, here.samples);
  if (there.workers != here.workers)
    return differ("number of bsp slots (workers)", there.workers, here.workers);
  return "job: bsp is used in one of them only";
}

std::vector<std::string> option_differences(const job_spec& there, const job_spec& here,
                                            const std::string& where) {
  std::vector<std::string> lines;
  if (there.own_options.empty()) // Or unknown: older programs did not keep them.
    return lines;
  for (const auto& mine : here.own_options) {
    const auto* const other = find_option(there, mine.name);
    const auto name = printable(mine.name);
    if (other == nullptr)
      lines.push_back(name + " is " + quoted_value(mine) + " here, and " + where
                      + " has no such option");
    else if (other->value != mine.value)
      lines.push_back(name + " is " + quoted_value(mine) + " here and was " + quoted_value(*other)
                      + " in " + where);
  }
  for (const auto& other : there.own_options)
    if (find_option(here, other.name) == nullptr)
      lines.push_back(printable(other.name) + " was " + quoted_value(other) + " in " + where
                      + ", and this program has no such option");
  return lines;
}

} // namespace troupe::storage
