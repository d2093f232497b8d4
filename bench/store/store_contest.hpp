// Defines the contestants of push_pull: servers that hold an array of floats between them, and
// clients that push gradients of it and pull it. Each is a process.
#pragma once

#include "base/buffer.hpp"
#include "bench/child.hpp"
#include "bench/round_trips.hpp"
#include "bench/store/kv_requests.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

struct store_load {
  std::size_t bytes = 4; ///< Size of the whole array; a multiple of 4.
  std::size_t window = 1;
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  std::size_t sparse_rows = 0;      ///< Rows of 16 floats of a sparse table; 0: a dense table.
  std::size_t memory_cap_bytes = 0; ///< Limit of the pushes that wait in a client; 0: its default.
};

/// Floats of a row of the sparse table. An operation is on random rows, `bytes` of values.
constexpr std::uint32_t sparse_width = 16;
/// Number of key lists that take turns: too many for a receiver to remember them all.
constexpr std::size_t sparse_key_lists = 48;

class store_server {
public:
  virtual ~store_server() = default;
  virtual std::string address() const = 0;
  /// Answers until the process is killed.
  virtual void serve() = 0;
};

/// Counts pushes that are sent without waiting; cumulative.
struct flood_counters {
  std::uint64_t made = 0, acknowledged = 0, refused = 0;
};

class store_client {
public:
  virtual ~store_client() = default;
  /// Runs operations until `trips` is done, and reads every pulled byte. Throws if one fails.
  virtual void run(operation what, round_trips& trips) = 0;
  /// Pulls one element, one pull at a time, and returns the seconds of each: `count` pulls if
  /// `pushes` is 0. Otherwise it sends all pushes first, and pulls until they are acknowledged,
  /// `count` times at most.
  virtual std::vector<double> probe(std::size_t pushes, std::size_t count) = 0;
  /// Pushes a gradient of its own every `interval`, answered or not, for `duration`; calls `report`
  /// every second.
  virtual void flood(std::chrono::milliseconds interval, std::chrono::seconds duration,
                     std::function<void(const flood_counters&)> report) = 0;
};

/// Gradients of the whole array, made before the clock runs.
class gradients {
public:
  explicit gradients(const store_load& what);

  std::shared_ptr<const float> at(std::size_t i) const { return buffers_[i % buffers_.size()]; }
  /// Returns another gradient, as a worker computes them.
  std::shared_ptr<const float> fresh();

private:
  std::size_t floats_;
  buffer_pool pool_;
  std::vector<std::shared_ptr<float>> buffers_;
};

struct store_contestant {
  std::string name;
  std::string about;
  std::uint32_t servers_max;
  std::function<std::unique_ptr<store_server>(const store_load&, std::uint32_t index)> make_server;
  std::function<std::unique_ptr<store_client>(const store_load&, std::uint32_t index,
                                              const std::vector<std::string>& servers)>
    make_client;
  std::map<std::string, std::string> environment;
};

std::vector<store_contestant> troupe_stores(const std::filesystem::path& certificates);
std::vector<store_contestant> zeromq_stores();

} // namespace troupe::bench
