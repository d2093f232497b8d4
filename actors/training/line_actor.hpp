// Runs a later part of a line as a member of the role `actor`.
#pragma once

#include "actors/training/inner_actor.hpp"
#include "actors/training/line_part.hpp"

#include <cstdint>
#include <string>

namespace troupe {

class line_actor final : public inner_actor, line_shell {
public:
  /// Throws std::runtime_error if the part cannot be made.
  line_actor(line_part_options options, const part_maker& make)
      : part_(std::move(options), make, *this) {}

  /// Returns the part, for its ports.
  line_part& part() { return part_; }

  void tick(time_point now) override { part_.tick(now); }
  void answered(std::uint64_t number, const result<reply>& what, time_point now) override {
    part_.answered(number, what, now);
  }
  void run() override { part_.run(); }

private:
  void ask(std::uint64_t number, request what) override { shell().ask(number, std::move(what)); }
  void run_soon() override { shell().run_soon(); }
  void done(gradient_outcome) override {} // Only of first parts.
  void fail(const failure& why) override { shell().fail(why); }
  void say(const std::string&) override {} // As above.

  line_part part_;
};

} // namespace troupe
