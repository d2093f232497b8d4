// Lets code that reads and writes numbers by the program's locale do so as in the locale "C".
#pragma once

#include <clocale>
#include <locale>
#include <optional>
#include <string>

#include <locale.h>

namespace troupe {

/// While one exists, functions of C that this thread calls use the locale "C", whatever setlocale()
/// set. If the program has another global locale of C++, that one is "C" too, for all threads,
/// because streams have no locale for a thread. It is for CLI11; Troupe's own code uses
/// std::from_chars and fmt, which know no locale.
class classic_locale {
public:
  classic_locale() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), thread_(uselocale(plain_)) {
    if (std::locale{} == std::locale::classic())
      return;
    process_ = setlocale(LC_ALL, nullptr);
    streams_ = std::locale::global(std::locale::classic()); // Which calls setlocale(), too.
  }

  ~classic_locale() {
    if (streams_) {
      std::locale::global(*streams_);
      setlocale(LC_ALL, process_.c_str());
    }
    uselocale(thread_);
    freelocale(plain_);
  }
  classic_locale(const classic_locale&) = delete;
  classic_locale& operator=(const classic_locale&) = delete;

private:
  locale_t plain_, thread_;
  std::string process_;
  std::optional<std::locale> streams_; ///< The global one; nullopt: it is "C".
};

} // namespace troupe
