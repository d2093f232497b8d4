// Keeps the dense values that a client has, so that a pull has to bring only changed ones.
#pragma once

#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// The outcome of one pull. Shared, and never written to.
struct cached_values {
  std::vector<float_ptr> tables; ///< Whole, in own memory; null: sparse, or no values held.
  /// The ranges to pull: they cover the dense tables, in their order, but frozen ones only until
  /// their values are held. Each stamp names the values that are held there; 0: they have no name.
  std::vector<range> ranges;
};
using cached_ptr = std::shared_ptr<const cached_values>;

/// Returns the cache before the first pull: the whole tables, without values. `only`: the tables
/// that the client pulls; empty: all.
cached_ptr empty_cache(const job_spec& job, const std::vector<table_id>& only = {});

/// Returns a cache of the frozen tables of `whole` alone; without frozen tables, the empty one.
cached_ptr frozen_cache(const job_spec& job, const cached_values& whole);
/// Returns whether the cache lacks the values of a frozen table.
bool lacks_frozen(const job_spec& job, const cached_values& known);

/// Joins the pieces of a reply with the cached values that it calls `unchanged`. `known`: the cache
/// whose ranges the pull sent; a table without a range there was not pulled. A table without
/// changes, or held and frozen, keeps its memory.
/// Errors: malformed (the reply does not cover the tables, or calls values unchanged that are not
/// cached).
result<cached_ptr> hold(const job_spec& job, const cached_values& known, const pull_reply& answer,
                        buffer_pool& pool);

} // namespace troupe
