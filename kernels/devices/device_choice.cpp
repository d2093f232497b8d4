#include "kernels/devices/device_choice.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace troupe {

namespace {

/// Splits text at separators, of which there may be none.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (;;) {
    const auto end = text.find(separator);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return words;
    text.remove_prefix(end + 1);
  }
}

/// No machine has as many; a larger number is a typing error.
constexpr std::uint32_t device_max = 1023;

bool parse_number(std::string_view word, std::uint32_t& number) {
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && stop == word.data() + word.size() && number <= device_max;
}

} // namespace

result<device_choice> device_choice::parse(const std::string& text) {
  device_choice made;
  made.text_ = text;
  for (const auto word : split(text, '+')) {
    part next;
    if (word == "cpu") {
      next.kind = part_kind::cpu;
    } else if (word == "auto") {
      next.kind = part_kind::automatic;
    } else if (word == "emulated" || word == "cuda-twin") {
      next.kind = part_kind::emulated;
    } else if (word == "cuda:all") {
      next.kind = part_kind::all;
    } else if (word.starts_with("cuda:")) {
      next.kind = part_kind::listed;
      for (const auto number : split(word.substr(5), ','))
        if (!parse_number(number, next.devices.emplace_back()))
          return {errc::invalid_argument,
                  fmt::format("--device {}: '{}' is no number of a device; write cuda:0, cuda:0,1 "
                              "or cuda:all",
                              text, number)};
    } else {
      return {errc::invalid_argument,
              fmt::format("--device {}: '{}' is unknown; known: cpu, auto, cuda:all, cuda:0,1, "
                          "emulated, and several of them for workers in turn, as in cuda:0+cpu",
                          text, word)};
    }
    made.parts_.push_back(std::move(next));
  }
  return made;
}

bool device_choice::asks_for_cuda() const {
  return std::ranges::any_of(parts_, [](const part& x) {
    return x.kind != part_kind::cpu && x.kind != part_kind::emulated;
  });
}

result<std::vector<device_place>> device_choice::places(const result<std::uint32_t>& cuda) const {
  std::vector<device_place> all;
  const auto add_all = [&] {
    for (std::uint32_t device = 0; device < *cuda; ++device)
      all.push_back({device_kind::cuda, device});
  };
  for (const part& one : parts_) {
    const bool by_name = one.kind == part_kind::all || one.kind == part_kind::listed;
    if (by_name && !cuda)
      return {errc::device_failed,
              fmt::format("--device {}: {}; use --device cpu, or auto, which takes any GPU", text_,
                          cuda.error().text)};
    switch (one.kind) {
    case part_kind::cpu: all.push_back({device_kind::cpu, 0}); break;
    case part_kind::emulated: all.push_back({device_kind::emulated, 0}); break;
    case part_kind::all: add_all(); break;
    case part_kind::automatic:
      if (cuda)
        add_all();
      else
        all.push_back({device_kind::cpu, 0});
      break;
    case part_kind::listed:
      for (const std::uint32_t device : one.devices) {
        if (device >= *cuda)
          return {errc::device_failed,
                  fmt::format("--device {}: there is no CUDA device {}; {}", text_, device,
                              *cuda == 1 ? "the only one is cuda:0"
                                         : fmt::format("there are cuda:0 to cuda:{}", *cuda - 1))};
        all.push_back({device_kind::cuda, device});
      }
    }
  }
  return all;
}

} // namespace troupe
