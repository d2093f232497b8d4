// Shared memory by hand: the sender copies into a slot of a memfd and says so over a Unix socket,
// the receiver reads it there and answers. A side that waits sleeps.
#include "bench/links/link_contest.hpp"
#include "bench/links/raw_socket.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace troupe::bench {

namespace {

/// One slot for each payload that may be under way; all pages are there from the start.
class arena {
public:
  explicit arena(const load& what) : arena(what, memfd_create("bench_arena", MFD_CLOEXEC), true) {}
  /// `path`: another process's arena.
  arena(const load& what, const std::string& path)
      : arena(what, open(path.c_str(), O_RDWR | O_CLOEXEC), false) {}
  ~arena() {
    munmap(memory_, size_);
    close(descriptor_);
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  std::byte* slot(std::size_t i) const { return memory_ + i * slot_bytes_; }
  /// Returns the path at which another process of this user finds it.
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_);
  }

private:
  arena(const load& what, int descriptor, bool made)
      : slot_bytes_((what.bytes + 4095) / 4096 * 4096), size_(what.window * slot_bytes_),
        descriptor_(descriptor) {
    if (descriptor_ < 0 || (made && ftruncate(descriptor_, static_cast<off_t>(size_)) != 0))
      fail();
    void* mapped =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
    if (mapped == MAP_FAILED)
      fail();
    memory_ = static_cast<std::byte*>(mapped);
  }

  [[noreturn]] static void fail() {
    throw std::runtime_error{"no shared memory: " + std::system_category().message(errno)};
  }

  std::size_t slot_bytes_, size_;
  int descriptor_;
  std::byte* memory_ = nullptr;
};

class memfd_receiver final : public receiver {
public:
  explicit memfd_receiver(const load& what)
      : slots_(what), listener_(raw_socket::listen(socket_kind::unix_stream)), read_(what) {}

  std::string address() const override { return listener_.address() + " " + slots_.path(); }

  void serve() override {
    const auto socket = listener_.accept();
    for (;;) {
      std::uint64_t slot = 0;
      socket.receive(&slot, sizeof slot);
      const std::uint64_t answer = read_(slots_.slot(slot));
      socket.send(&answer, sizeof answer);
    }
  }

private:
  arena slots_;
  raw_socket listener_;
  payload_reader read_;
};

class memfd_sender final : public sender {
public:
  memfd_sender(const load& what, const std::string& address)
      : what_(what), slots_(what, address.substr(address.find(' ') + 1)),
        socket_(
          raw_socket::connect(socket_kind::unix_stream, address.substr(0, address.find(' ')))),
        from_(what) {}

  void run(round_trips& trips) override {
    for (std::size_t answered = 0; !trips.done(); ++answered) {
      while (trips.may_send()) {
        const auto number = trips.begin();
        const std::uint64_t slot = number % what_.window;
        std::memcpy(slots_.slot(slot), from_.at(number).get(), what_.bytes);
        socket_.send(&slot, sizeof slot);
      }
      std::uint64_t answer = 0;
      socket_.receive(&answer, sizeof answer);
      trips.end(answered);
      from_.check_answer(answered, answer);
    }
  }

private:
  load what_;
  arena slots_;
  raw_socket socket_;
  payloads from_;
};

} // namespace

std::vector<contestant> memfd_contestants() {
  return {{"memfd",
           "copied into shared memory, read in place; a Unix socket says when",
           [](const load& what) { return std::make_unique<memfd_receiver>(what); },
           [](const load& what, const std::string& address) {
             return std::make_unique<memfd_sender>(what, address);
           },
           {}}};
}

} // namespace troupe::bench
