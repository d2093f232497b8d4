// The dense values that a puller has, and how the next pull is made whole with them: what did not
// change since does not come again.
#pragma once

#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// One pull's outcome. Shared, and written to by nobody.
struct cached_values {
  std::vector<float_ptr> tables; ///< Whole, in own memory; null: sparse, or nothing is held.
  /// Cover the dense tables, in their order. The stamp of each names the values that are held
  /// there; 0: they have no name.
  std::vector<range> ranges;
};
using cached_ptr = std::shared_ptr<const cached_values>;

/// Before the first pull: the whole tables, without values.
cached_ptr empty_cache(const job_spec& job);

/// Puts together what an answer brought and, where that says `unchanged`, what its asker had:
/// `known`, whose ranges were the question. A table of which nothing changed is the same memory.
/// Errors: malformed (the answer does not cover the tables, or calls unchanged what nobody has).
result<cached_ptr> hold(const job_spec& job, const cached_values& known, const pull_reply& answer,
                        buffer_pool& pool);

} // namespace troupe
