#include "actors/roles/worker/compress_stage.hpp"

#include "base/growing_map.hpp"

#include <utility>

namespace troupe {

namespace {

class compress_stage final : public stage_decider {
public:
  compress_stage(const job_spec& job, codec_options options)
      : pulls_(options.pulls), coder_(job, std::move(options)) {}

  void ask(request_token from, request what, time_point, stage_effects& effects) override {
    const bool is_push = what.push.has_value();
    if (what.push)
      coder_.pack(*what.push);
    if (what.pull)
      what.pull->packed_as = pulls_;
    open_.add(effects.forward(std::move(what)).value, {from, is_push});
  }

  void answered(forward_id number, reply what, time_point, stage_effects& effects) override {
    const auto [from, is_push] = *open_.extract(number.value);
    if (auto sound = what.pulled ? coder_.unpack(*what.pulled) : result<void>{}; !sound)
      refuse(from, is_push, sound.error(), effects);
    else
      effects.answer(from, std::move(what));
  }

  void failed(forward_id number, const failure& why, time_point, stage_effects& effects) override {
    const auto [from, is_push] = *open_.extract(number.value);
    refuse(from, is_push, why, effects);
  }

private:
  struct open_request {
    request_token from;
    bool is_push = false;
  };

  void refuse(request_token from, bool is_push, const failure& why, stage_effects& effects) {
    if (is_push && coder_.forget())
      effects.log("a push failed (" + why.text + "): the residue of its compression is dropped");
    effects.refuse(from, why);
  }

  encoding pulls_;
  codec coder_;
  growing_map<open_request> open_; ///< The request behind each forward.
};

} // namespace

std::unique_ptr<stage_decider> make_compress_stage(const job_spec& job, codec_options options) {
  return std::make_unique<compress_stage>(job, std::move(options));
}

} // namespace troupe
