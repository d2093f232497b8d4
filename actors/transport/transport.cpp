#include "actors/transport/transport.hpp"

#include "actors/transport/engine.hpp"
#include "actors/transport/streams/socket.hpp"

namespace troupe {

transport::transport(hello self, link_events events, transport_options options)
    : engine_(std::make_unique<engine>(std::move(self), std::move(events), std::move(options))) {}

transport::~transport() = default;

void transport::stop() { engine_->stop(); }

result<endpoint> transport::listen(const endpoint& where, std::optional<port_range> ports) {
  auto made = detail::open_listener(where, ports);
  if (!made)
    return made.error();
  return engine_->serve(std::move(*made));
}

result<endpoint> transport::listen_on(int descriptor) {
  troupe::descriptor owned{descriptor};
  if (const auto usable = detail::adopt_listener(owned); !usable)
    return usable.error();
  return engine_->serve(std::move(owned));
}

link_id transport::connect(const endpoint& where) { return engine_->connect(where); }

std::size_t transport::send(link_id link, const message& what) { return engine_->send(link, what); }

void transport::close(link_id link) { engine_->close(link); }

void transport::wake() { engine_->wake(); }

bool transport::on_own_thread() const { return engine_->on_own_thread(); }

result<int> make_listener(const endpoint& where, std::optional<port_range> ports) {
  auto made = detail::open_listener(where, ports);
  if (!made)
    return made.error();
  return made->release();
}

} // namespace troupe
