#include "base/endpoint.hpp"

#include "base/number_from.hpp"
#include "base/quote.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace troupe {

result<endpoint> parse_endpoint(const std::string& text) {
  const auto wrong = [&text](const char* why) {
    return failure{errc::invalid_argument, std::string{why} + ": '" + text + "'"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    return wrong("an address has the form host:port");
  endpoint where;
  where.host = text.substr(0, colon);
  if (where.host.size() > 2 && where.host.front() == '[' && where.host.back() == ']')
    where.host = where.host.substr(1, where.host.size() - 2);
  else if (where.host.find_first_of(":[]") != std::string::npos)
    return wrong("an IPv6 address has the form [host]:port");
  if (where.host.empty() || where.host.find_first_of(" \t\r\n/") != std::string::npos)
    return wrong("an address has the form host:port");
  const char* const first = text.data() + colon + 1;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, where.port);
  if (error != std::errc{} || end != last)
    return wrong("a port is a number from 0 to 65535");
  return where;
}

result<port_range> parse_port_range(const std::string& text) {
  const auto dash = text.find('-');
  const auto first = number_from<std::uint16_t>(text.substr(0, dash));
  const auto last =
    dash == std::string::npos ? first : number_from<std::uint16_t>(text.substr(dash + 1));
  if (first && last && *first > 0 && *first <= *last)
    return port_range{*first, *last};
  return {errc::invalid_argument,
          quote(text) + " is not a range of ports from 1 to 65535, such as 40000-40100"};
}

std::string to_string(const port_range& ports) {
  return std::to_string(ports.first) + "-" + std::to_string(ports.last);
}

std::string to_string(const endpoint& where) {
  const bool brackets = where.host.find(':') != std::string::npos;
  const std::string port = std::to_string(where.port);
  return brackets ? "[" + where.host + "]:" + port : where.host + ":" + port;
}

} // namespace troupe
