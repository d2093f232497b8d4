// Quotes foreign text (files, options, peers) in messages for people and in JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// Returns `text` in single quotes for a message: at most 40 characters, then "...". Control and
/// invisible formatting characters, and bytes that are not UTF-8, become \xNN.
std::string quote(std::string_view text);

/// Returns `text` as one line for a terminal: at most `limit` characters, then "...", escaped as by
/// `quote()`. Messages pass through here again when they are printed.
std::string printable(std::string_view text, std::size_t limit = 1000);

/// Returns `text` with each word of more than 200 bytes cut to 40 characters and "...". It is for a
/// library's messages that repeat their input.
std::string with_short_words(std::string_view text);

/// Returns whether `text` is UTF-8 as RFC 3629 defines it.
bool is_utf8(std::string_view text);

/// Writes a backslash, a control character and each byte that is not UTF-8 as \xNN, so that JSON
/// can hold any path. Other text stays as it is.
std::string escape_bytes(std::string_view text);
/// Reverses `escape_bytes()`.
std::string unescape_bytes(std::string_view text);

} // namespace troupe
