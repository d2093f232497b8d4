#include "storage/manifest.hpp"

#include "tests/storage/sample_checkpoint.hpp"

#include <string>

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

} // namespace troupe::storage::manifest_test
