#include "actors/tables/state_copy.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

held_version name_of(partition_id partition, const block_image& x) {
  return {partition, x.table, x.block, x.version};
}
held_version name_of(partition_id partition, const slab_image& x) {
  return {partition, x.table, x.slab, x.version};
}

std::uint64_t bytes_of(const block_image& x) { return (x.count + x.state_count) * sizeof(float); }
std::uint64_t bytes_of(const slab_image& x) {
  return x.count * (x.row_floats * sizeof(float) + 2 * sizeof(std::uint64_t));
}

// A block or slab that is held is named by a count of 0, without content.
block_image named(block_image x) {
  return {x.table, x.block, x.version, x.steps, 0, nullptr, 0, nullptr};
}
slab_image named(slab_image x) {
  return {x.table, x.slab, x.version, 0, nullptr, x.row_floats, nullptr, nullptr};
}

class cutter {
public:
  cutter(const copy_part& like, const std::vector<held_version>& held) : like_(like), held_(held) {}

  void add(const partition_image& whole) {
    open(whole);
    for (const auto& x : whole.blocks)
      add(whole, x, &partition_image::blocks);
    for (const auto& x : whole.slabs)
      add(whole, x, &partition_image::slabs);
  }

  std::vector<copy_part> parts() && {
    for (auto& x : parts_)
      x.parts = static_cast<std::uint32_t>(parts_.size());
    return std::move(parts_);
  }

private:
  void open(const partition_image& whole) {
    auto& next = parts_.emplace_back(like_);
    next.part = static_cast<std::uint32_t>(parts_.size() - 1);
    next.image = {whole.partition, whole.version, whole.applied, {}, {}};
    bytes_ = 0;
  }

  template <class Image>
  void add(const partition_image& whole, const Image& x,
           std::vector<Image> partition_image::*list) {
    const bool is_held =
      std::binary_search(held_.begin(), held_.end(), name_of(whole.partition, x));
    if (bytes_ >= copy_part_bytes)
      open(whole);
    bytes_ += is_held ? 0 : bytes_of(x);
    (parts_.back().image.*list).push_back(is_held ? named(x) : x);
  }

  copy_part like_;
  const std::vector<held_version>& held_;
  std::vector<copy_part> parts_;
  std::uint64_t bytes_ = 0;
};

/// Inserts the joiner's own content where the copy only names it. Returns whether none is missing.
template <class Image>
bool complete_with(const std::map<held_version, const Image*>& own, partition_id partition,
                   std::vector<Image>& images) {
  return std::ranges::all_of(images, [&](Image& x) {
    if (x.count != 0)
      return true;
    const auto found = own.find(name_of(partition, x));
    if (found == own.end())
      return false;
    x = *found->second;
    return true;
  });
}

} // namespace

std::vector<held_version> versions_of(const std::vector<partition_image>& images) {
  std::vector<held_version> all;
  for (const auto& image : images) {
    for (const auto& x : image.blocks)
      all.push_back(name_of(image.partition, x));
    for (const auto& x : image.slabs)
      all.push_back(name_of(image.partition, x));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::uint64_t content_bytes(const partition_image& image) {
  std::uint64_t sum = 0;
  for (const auto& x : image.blocks)
    sum += bytes_of(x);
  for (const auto& x : image.slabs)
    sum += bytes_of(x);
  return sum;
}

std::vector<copy_part> cut_into_parts(const copy_part& like,
                                      const std::vector<partition_image>& images,
                                      const std::vector<held_version>& held) {
  cutter cut{like, held};
  for (const auto& x : images)
    cut.add(x);
  return std::move(cut).parts();
}

std::vector<copy_request> copy_in_progress::ask() {
  const auto until = parts_.empty() ? 1
                                    : std::min<std::uint64_t>(parts_.front().parts,
                                                              parts_.size() + copy_parts_ahead);
  std::vector<copy_request> requests;
  for (; asked_ < until; ++asked_)
    requests.push_back(
      {epoch_, asked_, asked_ == 0 ? versions_of(own_) : std::vector<held_version>{}});
  return requests;
}

bool copy_in_progress::add(const copy_part& part) {
  if (part.config != epoch_ || part.part >= part.parts)
    return false;
  const bool is_other =
    !parts_.empty() && (part.index != parts_.front().index || part.parts != parts_.front().parts);
  if (is_other) {
    parts_.clear();
    asked_ = 1;
  }
  if (part.part != parts_.size())
    return false;
  parts_.push_back(part);
  return true;
}

std::uint64_t copy_in_progress::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_)
    sum += content_bytes(part.image);
  return sum;
}

std::vector<partition_image> copy_in_progress::give_up() && {
  for (auto& part : parts_)
    own_.push_back(std::move(part.image));
  return std::move(own_);
}

std::optional<std::vector<partition_image>> copy_in_progress::images() const {
  std::map<held_version, const block_image*> blocks;
  std::map<held_version, const slab_image*> slabs;
  for (const auto& image : own_) {
    for (const auto& x : image.blocks)
      blocks.emplace(name_of(image.partition, x), &x);
    for (const auto& x : image.slabs)
      slabs.emplace(name_of(image.partition, x), &x);
  }
  std::vector<partition_image> all;
  for (const auto& part : parts_) {
    auto image = part.image;
    if (!complete_with(blocks, image.partition, image.blocks)
        || !complete_with(slabs, image.partition, image.slabs))
      return std::nullopt;
    if (all.empty() || all.back().partition != image.partition) {
      all.push_back(std::move(image));
      continue;
    }
    std::move(image.blocks.begin(), image.blocks.end(), std::back_inserter(all.back().blocks));
    std::move(image.slabs.begin(), image.slabs.end(), std::back_inserter(all.back().slabs));
  }
  return all;
}

} // namespace troupe
