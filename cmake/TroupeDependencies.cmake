# Finds the libraries that Troupe links, for the build and for an installed TroupeConfig.cmake.

include(CMakeFindDependencyMacro)

find_dependency(Threads)
find_dependency(fmt)
find_dependency(spdlog)
find_dependency(CLI11)
find_dependency(nlohmann_json)
find_dependency(OpenSSL 3.0)

# Finds libraries by their files. Debian has no CMake package for CAF and an empty one for Highway.
# Cap'n Proto's needs a C compiler, RocksDB's needs libraries that only a static link needs, and
# libzip's needs programs of another package.
function(troupe_import name library header)
  find_library(TROUPE_${library}_LIBRARY ${library} REQUIRED)
  find_path(TROUPE_${library}_INCLUDE ${header} REQUIRED)
  mark_as_advanced(TROUPE_${library}_LIBRARY TROUPE_${library}_INCLUDE)
  if(NOT TARGET ${name})
    add_library(${name} UNKNOWN IMPORTED GLOBAL)
    # Headers of imported targets are system headers, which give no warnings.
    set_target_properties(${name} PROPERTIES
      IMPORTED_LOCATION ${TROUPE_${library}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${TROUPE_${library}_INCLUDE})
  endif()
endfunction()

troupe_import(Troupe::caf_core caf_core caf/actor_system.hpp)
troupe_import(Troupe::hwy hwy hwy/highway.h)
troupe_import(Troupe::rocksdb rocksdb rocksdb/db.h)
troupe_import(Troupe::kj kj kj/common.h)
troupe_import(Troupe::capnp capnp capnp/message.h)
set_property(TARGET Troupe::capnp PROPERTY INTERFACE_LINK_LIBRARIES Troupe::kj)
troupe_import(Troupe::zip zip zip.h)
troupe_import(Troupe::httplib cpp-httplib httplib.h)
# Kernels keep arrays of vectors, which targets with vectors of unknown width forbid. SSSE3 is left
# out because each target lengthens the build, and CPUs without SSE4 are from 2006.
set_property(TARGET Troupe::hwy PROPERTY INTERFACE_COMPILE_DEFINITIONS
  "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV|HWY_SSSE3)")
# Debian compiled the library with these options, and classes in its header depend on them.
set_property(TARGET Troupe::httplib PROPERTY INTERFACE_COMPILE_DEFINITIONS
  CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
