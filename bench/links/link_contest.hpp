// Defines the contestants of links_bench: a sender and a receiver, each a process. The receiver
// reads every byte of a payload once and answers with its checksum.
#pragma once

#include "base/buffer.hpp"
#include "bench/checksum.hpp"
#include "bench/child.hpp"
#include "bench/round_trips.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// The receiver's use of a payload: adds up its words, or takes a step of SGD with it.
enum class work { sum, sgd };

struct load {
  std::size_t bytes = 0;  ///< Size of one payload; a multiple of 4.
  std::size_t window = 1; ///< Payloads that may wait for their answers.
  work kind = work::sum;
};

/// The receiver's work. Its weights are as long as a payload.
class payload_reader {
public:
  explicit payload_reader(const load& what);

  /// Returns the checksum: of the payload, or of the weights that it changed.
  std::uint64_t operator()(const void* payload);

private:
  load what_;
  buffer_pool pool_;
  std::shared_ptr<float> weights_;
  std::vector<float> scratch_;
};

/// The sender's payloads, one for each that may be under way; written once, before the clock runs.
class payloads {
public:
  explicit payloads(const load& what);

  std::shared_ptr<float> at(std::size_t i) const { return buffers_[i % buffers_.size()]; }
  /// Throws std::runtime_error unless `answer` is the answer to payload i.
  void check_answer(std::size_t i, std::uint64_t answer) const;

private:
  work kind_;
  buffer_pool pool_;
  std::vector<std::shared_ptr<float>> buffers_;
  std::vector<std::uint64_t> sums_;
};

class sender {
public:
  virtual ~sender() = default;
  /// Sends payloads until `trips` is done. Throws if a checksum is wrong.
  virtual void run(round_trips& trips) = 0;
};

class receiver {
public:
  virtual ~receiver() = default;
  virtual std::string address() const = 0;
  /// Answers until the process is killed.
  virtual void serve() = 0;
};

/// One way of moving payloads. If it cannot run here it throws a std::runtime_error with the
/// reason.
struct contestant {
  std::string name;
  std::string about;
  /// Empty: the sender is alone, as a limit.
  std::function<std::unique_ptr<receiver>(const load&)> make_receiver;
  std::function<std::unique_ptr<sender>(const load&, const std::string& address)> make_sender;
  std::map<std::string, std::string> environment;
};

std::vector<contestant> limit_contestants();
std::vector<contestant> raw_contestants();
std::vector<contestant> memfd_contestants();
std::vector<contestant> troupe_contestants();
std::vector<contestant> channel_contestants();
std::vector<contestant> caf_contestants();
std::vector<contestant> zeromq_contestants();

} // namespace troupe::bench
