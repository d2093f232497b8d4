#include "storage/manifest.hpp"

#include "storage/job_difference.hpp"
#include "tests/storage/sample_checkpoint.hpp"

#include <string>
#include <vector>

namespace troupe::storage::manifest_test {

namespace {

manifest sample_manifest() {
  const checkpoint_part part{12, {1}, {{"chain-1/000004.sst", 77, 0xdeadbeef}}, 9};
  return {12, sample_job(), {3}, 40, {1234}, {part}};
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("a manifest is the same after JSON and back") {
  const auto what = sample_manifest();
  const auto back = manifest_from_json(to_json(what));
  REQUIRE(back);
  CHECK(back->checkpoint == what.checkpoint);
  CHECK(back->job == what.job);
  CHECK(back->generation == what.generation);
  CHECK(back->clock == what.clock);
  CHECK(back->cursor == what.cursor);
  CHECK(back->parts == what.parts);
}

TEST_CASE("a manifest can be read by people, whatever the bytes of its names") {
  auto what = sample_manifest();
  const auto text = to_json(what);
  for (const auto* word : {"\"checkpoint\": 12", "\"name\": \"sample\"", "\"optimizer\": \"adam\"",
                           "\"crc32c\": \"deadbeef\"", "\"size_bytes\": 77"})
    CHECK_MESSAGE(text.find(word) != std::string::npos, word);
  what.job.name = "caf\xe9"; // Not UTF-8: the decoder of jobs refuses it.
  const auto refused = manifest_from_json(to_json(what));
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::malformed);
}

TEST_CASE("what is not a manifest is malformed, and no name leads out of its folder") {
  const auto text = to_json(sample_manifest());
  const std::string file = "chain-1/000004.sst";
  for (const auto& bad :
       {std::string{}, std::string{"{}"}, std::string{"[1"}, text.substr(0, text.size() / 2),
        with(text, "\"format\": 1", "\"format\": 2"), with(text, "deadbeef", "deadbee"),
        with(text, "deadbeef", "deadbeeg"),
        with(text, "\"checkpoint\": 12", "\"checkpoint\": \"x\""),
        with(text, "\"spec\": \"", "\"spec\": \"0"), with(text, "\"spec\": \"", "\"spec\": \"ffff"),
        with(text, file, "../chain-1/000004.sst"), with(text, file, "chain-1/../../x"),
        with(text, file, "chain-1/.."), with(text, file, "chain-2/000004.sst"),
        with(text, file, "chain-1/"), with(text, file, "/etc/passwd")}) {
    const auto refused = manifest_from_json(bad);
    CAPTURE(bad);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::malformed);
  }
}

TEST_CASE("each of the program's own options with another value is named in one line") {
  auto there = sample_job(), here = sample_job();
  there.own_options = {{"--sigma", "0.01"}, {"--data", "a"}, {"--old", "1"}};
  here.own_options = {{"--data", "a"}, {"--sigma", "5"}, {"--new", "2"}};
  using lines = std::vector<std::string>;
  CHECK(option_differences(there, here, "checkpoint 3")
        == lines{"--sigma is '5' here and was '0.01' in checkpoint 3",
                 "--new is '2' here, and checkpoint 3 has no such option",
                 "--old was '1' in checkpoint 3, and this program has no such option"});
  CHECK(option_differences(here, here, "the record").empty());
  there.own_options.clear(); // Older programs did not keep them.
  CHECK(option_differences(there, here, "the record").empty());
}

TEST_CASE("a checkpoint without a checksum of files fits, and one with another does not") {
  const auto earlier = sample_manifest();
  auto job = earlier.job;
  job.files_checksum = 5;
  CHECK(check_job("home", earlier, job));
  auto other = earlier;
  other.job.files_checksum = 6;
  const auto text = [&](const manifest& what, const job_spec& of) {
    const auto fits = check_job("home", what, of);
    REQUIRE_FALSE(fits);
    CHECK(fits.error().code == errc::wrong_job);
    return fits.error().text;
  };
  CHECK(text(other, job)
          .ends_with("belongs to another data set: the files that the program reads "
                     "have other bytes there and here"));
  CHECK(text(other, earlier.job)
          .ends_with("data set: it is read from files there and not read from a file here"));
}

} // namespace troupe::storage::manifest_test
