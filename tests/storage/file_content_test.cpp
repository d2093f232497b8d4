#include "storage/file_content.hpp"

#include "doctest/doctest.h"

#include <string>
#include <string_view>

namespace troupe::storage::file_content_test {

namespace {

using namespace std::string_literals;

std::string text_of(std::string_view head) {
  const auto found = content_of(head);
  return found ? found->text() : "";
}

} // namespace

TEST_CASE("a server's answer in place of a file is named") {
  for (const char* page : {"<!DOCTYPE html><html>", "<!doctype HTML>", " \r\n<HTML lang=en>",
                           "\xef\xbb\xbf<html>", "<head>"})
    CHECK(text_of(page) == "an HTML page, not the file itself: download the file again");
  CHECK(text_of("<?xml version='1.0'?><Error>")
        == "an XML text, not the file itself: download the file again");
  CHECK(text_of("404: Not Found")
        == "an answer of a web server, not the file itself: download the file again");
  for (const char* json : {"{}", "{ \"a\": 1}", "[{\"a\": 1}]", "[\n  1, 2]", "[[1]]", "[\"a\"]"})
    CHECK(text_of(json) == "a JSON text");
}

TEST_CASE("data and plain text are of no known format") {
  for (const std::string& head :
       {""s, "1,2,a\n"s, "[a],[b]\n"s, "{x},1\n"s, "1 1:0.5\n"s, "<a>,b\n"s, "BZh is a name"s,
        "\0\0\x08\x03\0\0\xea\x60"s, "\0\0\x08\x01"s, "60\n40\n480\n"s, "PAR"s})
    CHECK_MESSAGE(text_of(head).empty(), head);
}

TEST_CASE("formats of other programs are named") {
  CHECK(content_of("\x93NUMPY\x01\x00"s)->format == file_format::npy);
  CHECK(content_of("\x08\0\0\0\0\0\0\0{       "s)->format == file_format::safetensors);
  CHECK(text_of("\x89HDF\r\n\x1a\n").starts_with("HDF5: load it in Python"));
  for (const char protocol : {'\2', '\3', '\4', '\5'})
    CHECK(text_of(std::string{'\x80', protocol}).starts_with("a pickle of Python (.pkl, .pt): "));
  CHECK(text_of("x" + std::string(256, '\0') + "ustar  ")
        == "a tar archive: extract its files first");
}

} // namespace troupe::storage::file_content_test
