// Calls the stages of a path one request at a time, for a replay.
#pragma once

#include "actors/protocol/worker/stage.hpp"
#include "base/error.hpp"
#include "base/growing_map.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A stage of the program that is declared pure (traits::pure).
struct pure_stage {
  std::string name;
  std::function<std::unique_ptr<stage_decider>()> make; ///< As own_stage() has made it.
};

/// The pure stages between the workers and a store, in this order. Each must forward a request as
/// soon as it has it, and answer it as soon as its forward is answered. Several requests may be
/// open at a time.
class pure_path {
public:
  pure_path() = default;
  /// Makes the stages. Errors: invalid_argument (a maker threw this text).
  static result<pure_path> of(const std::vector<pure_stage>& stages);

  bool is_empty() const { return stages_.empty(); }
  /// Returns the request that the store gets for `passed`; tokens grow. Errors: contract_broken (a
  /// stage threw, or did something else than to forward the request).
  result<request> forward(request_token token, request passed);
  /// Returns the answer that the worker gets when the store gives `passed` for this request, which
  /// ends. Errors: as of forward().
  result<reply> answer(request_token token, reply passed);

private:
  struct part {
    std::string name;
    std::unique_ptr<stage_decider> decider;
    stage_effects effects;
  };

  std::vector<part> stages_;
  growing_map<std::vector<forward_id>> open_; ///< By token; one forward for each stage.
};

} // namespace troupe
