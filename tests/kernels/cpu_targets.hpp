// Runs a check on every CPU target that kernels were compiled for and that this machine has.
#pragma once

#include "doctest/doctest.h"

#include "hwy/highway.h"

#include <string>

namespace troupe::kernels {

/// Calls check() once for each target, from the best to the baseline without vectors. Kernels that
/// check() calls run on that target.
template <class Check>
void on_every_target(const Check& check) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    const std::string target_name = hwy::TargetName(target);
    CAPTURE(target_name);
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
}

} // namespace troupe::kernels
