#include "storage/detail/safetensors_header.hpp"

#include "base/quote.hpp"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::storage::detail {

namespace {

using nlohmann::json;

std::optional<number_format::kind> kind_of(std::string_view dtype) {
  using kind = number_format::kind;
  if (dtype == "F32")
    return kind::f32;
  if (dtype == "F64")
    return kind::f64;
  if (dtype == "F16")
    return kind::f16;
  return dtype == "BF16" ? std::optional{kind::bf16} : std::nullopt;
}

failure header_is_no_object() {
  return {errc::malformed, "the .safetensors header is not a JSON object of different names"};
}

/// Takes the parser's events. Its state is the header's open object or list, and the tensor whose
/// description is being read.
class header_events : public json::json_sax_t {
public:
  bool null() override { return take_other(); }
  bool boolean(bool) override { return take_other(); }
  bool number_integer(number_integer_t) override { return take_other(); }
  bool number_float(number_float_t, const string_t&) override { return take_other(); }
  bool binary(binary_t&) override { return take_other(); }

  bool number_unsigned(number_unsigned_t value) override {
    if (ignored_ > 0 || inside_ != place::list)
      return take_other();
    (field_ == field::shape ? entry_.shape : offsets_).push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (ignored_ > 0 || inside_ != place::entry || field_ != field::dtype)
      return take_other();
    entry_.type = kind_of(value);
    if (!entry_.type)
      entry_.dtype = std::move(value); // Only messages need it.
    return true;
  }

  bool key(string_t& name) override {
    if (ignored_ > 0)
      return true;
    if (inside_ == place::file) {
      entry_ = {std::move(name), {}, 0, 0, {}, {}};
      offsets_.clear();
      fields_.clear();
      return true;
    }
    if (std::ranges::find(fields_, name) != fields_.end() || fields_.size() == fields_max)
      return fail_entry();
    field_ = name == "dtype"          ? field::dtype
             : name == "shape"        ? field::shape
             : name == "data_offsets" ? field::offsets
                                      : field::other;
    fields_.push_back(std::move(name));
    return true;
  }

  bool start_object(std::size_t) override {
    if (ignored_ > 0 || is_ignored_value()) {
      ++ignored_;
      return true;
    }
    if (inside_ == place::nowhere)
      inside_ = place::file;
    else if (inside_ == place::file)
      inside_ = place::entry;
    else
      return fail_entry();
    return true;
  }

  bool start_array(std::size_t) override {
    if (ignored_ > 0 || (inside_ == place::entry && field_ == field::other)) {
      ++ignored_;
      return true;
    }
    if (inside_ != place::entry || field_ == field::dtype)
      return inside_ == place::nowhere ? fail(header_is_no_object()) : fail_entry();
    inside_ = place::list;
    return true;
  }

  bool end_array() override {
    if (ignored_ > 0)
      return end_ignored();
    inside_ = place::entry;
    return true;
  }

  bool end_object() override {
    if (ignored_ > 0)
      return end_ignored();
    if (inside_ == place::entry)
      return end_entry();
    inside_ = place::nowhere;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return fail(header_is_no_object());
  }

  /// Returns the entries after the last event, or the first error.
  result<std::vector<safetensors_entry>> take() {
    if (problem_)
      return *problem_;
    std::vector<std::string_view> names;
    for (const safetensors_entry& entry : entries_)
      names.push_back(entry.name);
    std::ranges::sort(names);
    if (std::ranges::adjacent_find(names) != names.end() || metadata_count_ > 1)
      return header_is_no_object();
    return std::move(entries_);
  }

private:
  enum class place : std::uint8_t { nowhere, file, entry, list };
  enum class field : std::uint8_t { dtype, shape, offsets, other };
  /// The format has three; other programs may add a few.
  static constexpr std::size_t fields_max = 32;

  bool is_metadata() const { return entry_.name == safetensors_metadata_key; }
  /// Returns whether the value that begins now is an ignored object.
  bool is_ignored_value() const {
    return (inside_ == place::file && is_metadata())
           || (inside_ == place::entry && field_ == field::other);
  }

  bool end_ignored() {
    --ignored_;
    metadata_count_ += ignored_ == 0 && inside_ == place::file;
    return true;
  }

  /// Takes a value without a meaning, which only unknown fields may have.
  bool take_other() {
    if (ignored_ > 0 || (inside_ == place::entry && field_ == field::other))
      return true;
    return inside_ == place::nowhere ? fail(header_is_no_object()) : fail_entry();
  }

  bool has(const char* name) const { return std::ranges::find(fields_, name) != fields_.end(); }

  bool end_entry() {
    inside_ = place::file;
    if (!has("dtype") || !has("shape") || offsets_.size() != 2 || offsets_[0] > offsets_[1])
      return fail_entry();
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    entry_.shape.shrink_to_fit();
    entries_.push_back(std::exchange(entry_, {}));
    return true;
  }

  bool fail_entry() {
    return fail({errc::malformed, "the .safetensors header describes a tensor badly: "
                                    + troupe::quote(entry_.name)});
  }

  bool fail(failure why) {
    if (!problem_)
      problem_ = std::move(why);
    return false;
  }

  place inside_ = place::nowhere;
  field field_ = field::other; ///< Field of the last key, inside an entry.
  std::size_t ignored_ = 0;    ///< Open objects and lists that are ignored.
  std::size_t metadata_count_ = 0;
  safetensors_entry entry_; ///< The tensor whose description is being read.
  std::vector<std::uint64_t> offsets_;
  std::vector<std::string> fields_; ///< Keys of its description so far.
  std::vector<safetensors_entry> entries_;
  std::optional<failure> problem_;
};

} // namespace

result<std::vector<safetensors_entry>> parse_safetensors_header(std::string_view text) {
  // The parser takes a NUL for the end of its input.
  const auto last = text.find_last_not_of(' ');
  if (text.find('\0') != std::string_view::npos || last == std::string_view::npos
      || text[last] != '}')
    return {errc::malformed, "the .safetensors header is not JSON followed by spaces only"};
  header_events events;
  json::sax_parse(text.begin(), text.end(), &events);
  return events.take();
}

} // namespace troupe::storage::detail
