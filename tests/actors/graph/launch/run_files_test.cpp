// Tests the files of a run that actors/graph writes and reads.
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/launch/import.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "serialization/layout.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"
#include "storage/tensor_file.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

namespace run_files_test {

using namespace troupe;
using namespace troupe::test;
using storage::temporary_directory;

namespace {

job_spec job_of_tables() {
  job_spec job;
  job.name = "files";
  job.partitions = 4;
  job.samples = 10;
  job.batch_samples = 1;
  job.tables = {table_of("w", 9000), table_of("bias", 5)};
  return job;
}

cluster_file sample() {
  cluster_file made;
  auto& members = made.members;
  members.job = job_of_tables();
  members.job.servers = 3;
  members.job.replicas = 2;
  members.job.shards = 4;
  members.checkpoints = "/somewhere/with space";
  members.fields[role::coordinator].servers.checkpoints = {std::chrono::milliseconds{1234}, 0, 6};
  members.fields[role::server] = members.fields[role::worker] = members.fields[role::actor] = {};
  members.resume = true;
  made.coordinator = {"127.0.0.1", 4000};
  made.secret = ~std::uint64_t{0};
  made.listen_host = "::1";
  made.open_to_others = true;
  return made;
}

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

storage::tensor tensor_of(const std::string& name, std::vector<std::uint64_t> shape) {
  const auto count =
    std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{});
  storage::tensor made{name, std::move(shape), std::vector<float>(count)};
  std::iota(made.values.begin(), made.values.end(), 1.0f);
  return made;
}

} // namespace

TEST_CASE("a_cluster_file_is_read_as_it_was_written_and_by_its_user_only") {
  const temporary_directory folder;
  std::ofstream{folder.path() / "cluster.json"} << "an older one, readable by all";
  const auto written = sample();
  REQUIRE(write_cluster_file(folder.path(), written));
  struct stat found {};
  REQUIRE(stat((folder.path() / "cluster.json").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  const auto read = read_cluster_file(folder.path());
  REQUIRE(read);
  CHECK(read->members.job == written.members.job);
  CHECK(read->coordinator == written.coordinator);
  CHECK(read->secret == written.secret);
  CHECK(read->listen_host == written.listen_host);
  CHECK(read->open_to_others);
  CHECK(read->members.checkpoints == written.members.checkpoints);
  CHECK(read->members.fields.at(role::coordinator).servers.checkpoints
        == written.members.fields.at(role::coordinator).servers.checkpoints);
  CHECK(read->members.resume);
}

TEST_CASE("a_cluster_file_that_is_absent_or_cannot_be_written_is_an_error") {
  const temporary_directory folder;
  CHECK(read_cluster_file(folder.path()).error().code == errc::io_failed);
  CHECK(write_cluster_file(folder.path() / "nowhere", sample()).error().code == errc::io_failed);
}

TEST_CASE("a_damaged_cluster_file_is_an_error_wherever_the_damage_is") {
  const temporary_directory folder;
  REQUIRE(write_cluster_file(folder.path(), sample()));
  const auto path = folder.path() / "cluster.json";
  const auto whole = text_of(path);
  for (std::size_t length = 0; length < whole.size(); length += 13) {
    std::ofstream{path} << whole.substr(0, length);
    CAPTURE(length);
    CHECK_FALSE(read_cluster_file(folder.path()));
  }
  for (const auto& [from, to] :
       {std::pair{"\"secret\":", "\"secre\":"}, std::pair{"true", "\"yes\""},
        std::pair{"127.0.0.1:4000", "127.0.0.1"}, std::pair{"\"job\":[", "\"job\":[1,2,"},
        std::pair{"1234ms", "soon"}}) {
    CAPTURE(from);
    auto text = whole;
    text.replace(text.find(from), std::string{from}.size(), to);
    std::ofstream{path} << text;
    const auto read = read_cluster_file(folder.path());
    REQUIRE_FALSE(read);
    CHECK(read.error().text.find(path.string()) != std::string::npos);
  }
}

TEST_CASE("a_directory_in_the_place_of_a_cluster_file_is_an_error") {
  const temporary_directory folder;
  std::filesystem::create_directories(folder.path() / "cluster.json");
  const auto read = read_cluster_file(folder.path());
  REQUIRE_FALSE(read);
  CHECK(read.error().text.find("cluster.json is damaged, or ") != std::string::npos);
}

TEST_CASE("imported_parameters_are_checkpoint_1_with_nothing_trained") {
  const temporary_directory folder;
  const auto job = job_of_tables();
  const auto checkpoints = folder.path() / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  for (const std::string name : {"p.npz", "p.safetensors"}) {
    CAPTURE(name);
    std::filesystem::remove_all(checkpoints);
    std::filesystem::create_directories(checkpoints);
    // The tensors are in another order than the job's.
    REQUIRE(storage::write_tensors(folder.path() / name,
                                   {tensor_of("bias", {5}), tensor_of("w", {9000})}));
    REQUIRE(import_parameters(folder.path() / name, checkpoints, job));
    const auto found = storage::newest_good(checkpoints, job);
    REQUIRE(found);
    REQUIRE(found->newest);
    CHECK(found->newest->checkpoint == 1);
    const auto images = storage::read(checkpoints, 1, job, {{0}, {1}, {2}, {3}});
    REQUIRE(images);
    std::size_t elements = 0;
    for (const auto& image : *images) {
      for (const auto& applied : image.applied)
        CHECK(applied.size() == 0);
      for (const auto& block : image.blocks) {
        const auto where = block_range(job, block.table, block.block);
        for (std::uint64_t i = 0; i < where.count; ++i, ++elements)
          CHECK(block.values.get()[i] == static_cast<float>(where.first + i + 1));
      }
    }
    CHECK(elements == 9005);
  }
}

TEST_CASE("tensors_that_do_not_fit_the_model_are_named") {
  const temporary_directory folder;
  const auto file = folder.path() / "p.npz";
  const std::pair<std::vector<storage::tensor>, std::string> cases[] = {
    {{tensor_of("w", {9000})}, file.string() + " holds no tensor 'bias'; it holds 'w'"},
    {{tensor_of("w", {9000}), tensor_of("b", {5})},
     "the model has no table 'b', which " + file.string() + " holds"},
    {{tensor_of("w", {9000}), tensor_of("bias", {5}), tensor_of("more", {1})},
     "the model has no table 'more', which " + file.string() + " holds"},
    {{tensor_of("w", {90, 100}), tensor_of("bias", {5})},
     "tensor 'w' is 90x100 in " + file.string() + " and 9000 in the model"},
    {{tensor_of("w", {9000}), tensor_of("bias", {})},
     "tensor 'bias' is a scalar in " + file.string() + " and 5 in the model"},
    {{tensor_of("w", {9000}), tensor_of("bias", {6})},
     "tensor 'bias' is 6 in " + file.string() + " and 5 in the model"}};
  for (const auto& [tensors, line] : cases) {
    CAPTURE(line);
    REQUIRE(storage::write_tensors(file, tensors));
    const auto done = import_parameters(file, folder.path(), job_of_tables());
    REQUIRE_FALSE(done);
    CHECK(done.error() == failure{errc::shape_mismatch, line});
  }
  CHECK(storage::last_number(folder.path()) == 0);
  CHECK(import_parameters(folder.path() / "absent.npz", folder.path(), job_of_tables()).error().code
        == errc::io_failed);
}

TEST_CASE("numbers_that_are_converted_when_imported_are_told") {
  const temporary_directory folder;
  const auto file = folder.path() / "bias.npy";
  auto job = job_of_tables();
  std::erase_if(job.tables, [](const auto& table) { return table.name != "bias"; });
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes{"\x93NUMPY\x01\x00\x76\x00", 10};
  bytes += header;
  for (const double x : {1.0, 2.0, 3.0, 4.0, 5.0})
    bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
  std::ofstream{file, std::ios::binary} << bytes;
  const auto done = import_parameters(file, folder.path(), job);
  REQUIRE(done);
  CHECK(*done == file.string() + " holds float64: its values become float32");
}

TEST_CASE("values_that_are_not_finite_are_named_when_imported") {
  const temporary_directory folder;
  const auto file = folder.path() / "p.npz";
  for (const auto& [value, word] :
       {std::pair{std::nanf(""), "NaN"}, std::pair{-HUGE_VALF, "infinite"}}) {
    auto bias = tensor_of("bias", {5});
    bias.values[3] = value;
    REQUIRE(storage::write_tensors(file, {tensor_of("w", {9000}), bias}));
    const auto done = import_parameters(file, folder.path(), job_of_tables());
    REQUIRE_FALSE(done);
    CHECK(done.error()
          == failure{errc::malformed,
                     "tensor 'bias' is " + std::string(word) + " at [3] in " + file.string()});
  }
  CHECK(storage::last_number(folder.path()) == 0);
}

TEST_CASE("tables_begin_with_the_arrays_of_files_that_the_program_names") {
  const temporary_directory folder;
  auto job = job_of_tables();
  plan what;
  what.job = job;
  REQUIRE(storage::write_tensors(folder.path() / "p.safetensors",
                                 {tensor_of("other", {3}), tensor_of("first", {9000})}));
  REQUIRE(storage::write_tensors(folder.path() / "b.npy", {tensor_of("x", {5})}));
  what.values = {from_file(folder.path() / "p.safetensors", "first"),
                 from_file(folder.path() / "b.npy")};
  REQUIRE(read_files(what));
  CHECK(*what.given.at(0) == tensor_of("first", {9000}).values);
  CHECK(*what.given.at(1) == tensor_of("x", {5}).values);
  CHECK(what.job.tables[0].values_checksum != 0);
  CHECK(what.notices.empty());
  CHECK(fingerprint(what.job) != fingerprint(job));

  plan later = what; // A process that starts again reads no file.
  later.job = job;
  take_checksums(later, what.job);
  CHECK(later.job == what.job);
  later.values = {std::nullopt, std::nullopt}; // A program without files is another one.
  later.job = job;
  take_checksums(later, what.job);
  CHECK(
    graph_difference(what.job, later.job)
    == "this process's graph belongs to another model: the first values of table 'w' are from a "
       "file there and from its initializer here");

  const auto checkpoints = folder.path() / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  REQUIRE(write_first_checkpoint(checkpoints, what.job, what.given));
  const auto images = storage::read(checkpoints, 1, what.job, {{0}, {1}, {2}, {3}});
  REQUIRE(images);
  for (const auto& image : *images)
    for (const auto& block : image.blocks) {
      const auto first = block_range(job, block.table, block.block).first;
      CHECK(
        std::equal(block.values.get(), block.values.get() + block.count,
                   what.given.at(block.table.value)->begin() + static_cast<std::ptrdiff_t>(first)));
    }
  const auto other = storage::newest_good(checkpoints, job);
  REQUIRE_FALSE(other);
  CHECK(other.error().text.find("the first values of table 'w' are from a file there")
        != std::string::npos);
}

TEST_CASE("each_mistake_of_a_tables_file_is_one_line_that_names_the_table") {
  const temporary_directory folder;
  const auto file = (folder.path() / "p.npz").string();
  auto odd = tensor_of("odd", {5});
  odd.values[2] = HUGE_VALF;
  REQUIRE(storage::write_tensors(file, {tensor_of("w", {90, 100}), odd}));
  const auto error_of = [&](std::size_t table, const values_file& from) {
    plan what;
    what.job = job_of_tables();
    what.values.resize(2);
    what.values[table] = from;
    const auto done = read_files(what);
    return done ? "" : done.error().text;
  };
  CHECK(error_of(0, from_file(file))
        == "table 'w': tensor 'w' is 90x100 in " + file + " and 9000 in the model");
  CHECK(error_of(1, from_file(file))
        == "table 'bias': " + file + " holds no tensor 'bias'; it holds 'w', 'odd'");
  CHECK(error_of(1, from_file(file, "odd"))
        == "table 'bias': tensor 'odd' is infinite at [2] in " + file);
  CHECK(error_of(1, from_file(file + "x")).starts_with("table 'bias': "));
  CHECK(error_of(1, from_file("absent.npz")).starts_with("table 'bias': cannot open absent.npz"));
}

namespace {

/// Writes a .safetensors with the tables of job_of_tables(), of which `name` is of integers, and a
/// tensor of integers that no table takes.
void write_with_integers(const std::filesystem::path& file, const std::string& name = "") {
  std::string head = "{", values;
  for (const auto& [each, count] :
       {std::pair{"w", 9000}, std::pair{"bias", 5}, std::pair{"norm.num_batches_tracked", 1}}) {
    const bool is_integer = each == name || count == 1;
    const auto begin = values.size();
    values.append(static_cast<std::size_t>(count) * (is_integer ? 8 : 4), '\0');
    head += (begin > 0 ? ",\"" : "\"") + std::string(each) + "\":{\"dtype\":\""
            + (is_integer ? "I64" : "F32") + "\",\"shape\":[" + std::to_string(count)
            + "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(values.size())
            + "]}";
  }
  head += "}";
  std::string length;
  for (int i = 0; i < 8; ++i)
    length += static_cast<char>(head.size() >> (8 * i));
  std::ofstream{file, std::ios::binary} << length << head << values;
}

plan plan_of(const std::vector<std::string>& data_files) {
  plan what;
  what.job = job_of_tables();
  what.values.resize(what.job.tables.size());
  what.data_files = data_files;
  return what;
}

} // namespace

TEST_CASE("parts_of_a_file_that_no_table_takes_are_left_out") {
  const temporary_directory folder;
  const auto file = folder.path() / "p.safetensors";
  std::filesystem::create_directories(folder.path() / "c");
  write_with_integers(file);
  CHECK(import_parameters(file, folder.path() / "c", job_of_tables()));
  auto what = plan_of({});
  what.values = {from_file(file), from_file(file)};
  CHECK(read_files(what));

  write_with_integers(file, "bias"); // A table takes it.
  const std::string why = "dtype is 'I64', not F16, BF16, F32 or F64: tensor 'bias', in ";
  const auto refused = import_parameters(file, folder.path(), job_of_tables());
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == failure{errc::invalid_argument, why + file.string()});
  const auto unread = read_files(what);
  REQUIRE_FALSE(unread);
  CHECK(unread.error().text == "table 'bias': " + why + file.string());
}

TEST_CASE("the_names_that_a_file_holds_are_listed_up_to_a_limit") {
  const temporary_directory folder;
  const auto file = folder.path() / "p.npz";
  std::vector<storage::tensor> tensors;
  for (int i = 0; i < 9; ++i)
    tensors.push_back(tensor_of("layer" + std::to_string(i) + ".weight", {2}));
  REQUIRE(storage::write_tensors(file, tensors));
  auto what = plan_of({});
  what.values[0] = from_file(file);
  CHECK(read_files(what).error().text
        == "table 'w': " + file.string()
             + " holds no tensor 'w'; it holds 'layer0.weight', 'layer1.weight', 'layer2.weight', "
               "'layer3.weight', 'layer4.weight', 'layer5.weight' and 3 more");
}

TEST_CASE("a_checksum_of_the_files_that_a_program_reads_is_part_of_its_job") {
  const temporary_directory folder;
  const auto one = (folder.path() / "one").string(), two = (folder.path() / "two").string();
  std::ofstream{one} << "1 2 3";
  std::ofstream{two} << "4 5 6";
  const auto checksum_of = [](const std::vector<std::string>& files) {
    auto what = plan_of(files);
    REQUIRE(read_files(what));
    return what.job.files_checksum;
  };
  CHECK(checksum_of({}) == 0);
  const auto both = checksum_of({one, two});
  CHECK(both != 0);
  CHECK(both == checksum_of({one, two}));
  CHECK(both != checksum_of({two, one}));
  CHECK(both != checksum_of({one}));

  auto child = plan_of({one, two}); // It reads no file for the checksum.
  auto theirs = job_of_tables();
  theirs.files_checksum = both;
  std::filesystem::remove(two);
  take_checksums(child, theirs);
  CHECK(child.job == theirs);

  std::ofstream{two} << "4 5 7";
  CHECK(checksum_of({one, two}) != both);
  std::filesystem::remove(two);
  REQUIRE(mkfifo(two.c_str(), 0600) == 0);
  auto pipe = plan_of({one, two});
  CHECK(read_files(pipe).error()
        == failure{errc::invalid_argument,
                   "cannot take a checksum of " + two
                     + ", which the program reads: it is a pipe: let the program give a dataset_id "
                       "in its place"});
}

TEST_CASE("a_resumed_run_tells_what_differs_from_its_checkpoint") {
  const temporary_directory folder;
  const auto checkpoints = folder.path() / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  auto earlier = job_of_tables();
  earlier.own_options = {{"--sigma", "0.01"}};
  REQUIRE(write_first_checkpoint(checkpoints, earlier, {}));
  plan what;
  what.program = "files";
  what.options.asked_mode = run_mode::threads;
  what.options.checkpoint_directory = checkpoints;
  what.options.resume = true;
  auto& job = what.job = earlier;
  job.own_options = {{"--sigma", "5"}};
  job.files_checksum = 7;
  {
    std::vector<std::string> told;
    const auto made =
      prepare_directories(what, [&](const notice& each) { told.push_back(each.text); });
    REQUIRE_MESSAGE(made, made.error().text);
    CHECK(told
          == std::vector<std::string>{
            "checkpoint 1 has no checksum of the files that the program reads: this run goes on as "
            "if they were the same",
            "--sigma is '5' here and was '0.01' in checkpoint 1"});
  }
  std::filesystem::remove_all(checkpoints);
  std::filesystem::create_directories(checkpoints);
  REQUIRE(write_first_checkpoint(checkpoints, job, {}));
  job.files_checksum = 8;
  const auto refused = prepare_directories(what, [](const notice&) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::wrong_job);
  CHECK(refused.error().text.ends_with("belongs to another data set: the files that the program "
                                       "reads have other bytes there and here"));
}

} // namespace run_files_test
