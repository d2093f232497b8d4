# Adds the examples and tools, which are built into bin/.

# -- examples/02_async_sgd: what its programs and its tests share --------------

set(sgd ${PROJECT_SOURCE_DIR}/examples/02_async_sgd)
file(GLOB_RECURSE sgd_sources CONFIGURE_DEPENDS ${sgd}/*.cpp)
list(REMOVE_ITEM sgd_sources ${sgd}/main.cpp ${sgd}/plain_loop.cpp)
if(sgd_sources)
  find_library(TROUPE_OPENBLAS openblas REQUIRED)
  find_path(TROUPE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread openblas REQUIRED)
  mark_as_advanced(TROUPE_OPENBLAS TROUPE_CBLAS_INCLUDE)
  # These unpack data files and compute their checksum.
  troupe_import(Troupe::bz2 bz2 bzlib.h)
  troupe_import(Troupe::lzma lzma lzma.h)
  troupe_import(Troupe::xxhash xxhash xxhash.h)
  add_library(troupe_example_sgd STATIC ${sgd_sources})
  target_link_libraries(troupe_example_sgd PUBLIC Troupe::actors ${TROUPE_OPENBLAS} ZLIB::ZLIB
    Troupe::bz2 Troupe::lzma Troupe::xxhash)
  target_include_directories(troupe_example_sgd SYSTEM PUBLIC ${TROUPE_CBLAS_INCLUDE})
  # At -O2, GCC 12 vectorises no loop with an unknown number of rounds.
  target_compile_options(troupe_example_sgd PRIVATE -O3)
  if(EXISTS ${sgd}/plain_loop.cpp)
    add_executable(plain_loop ${sgd}/plain_loop.cpp)
    target_link_libraries(plain_loop PRIVATE troupe_example_sgd)
    target_compile_options(plain_loop PRIVATE -O3)
  endif()
endif()

# -- examples/NN_name/main.cpp: program `name` ---------------------------------

include(cmake/troupe_libtorch.cmake)
file(GLOB mains CONFIGURE_DEPENDS examples/*/main.cpp)
if(TROUPE_NO_LIBTORCH)
  list(REMOVE_ITEM mains ${PROJECT_SOURCE_DIR}/examples/09_libtorch/main.cpp)
endif()
foreach(main IN LISTS mains)
  cmake_path(GET main PARENT_PATH folder)
  cmake_path(GET folder FILENAME program)
  string(REGEX REPLACE "^[0-9]+_" "" program ${program})
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(folder STREQUAL sgd)
    set(parts ${main}) # Its other sources are a library, which tests use as well.
  endif()
  add_executable(${program} ${parts})
  target_link_libraries(${program} PRIVATE Troupe::actors)
  foreach(part IN LISTS parts)
    file(STRINGS ${part} shared LIMIT_COUNT 1 REGEX "^#include \"examples/02_async_sgd/")
    if(shared) # It uses the data, models and kernels of 02_async_sgd.
      target_link_libraries(${program} PRIVATE troupe_example_sgd)
      break()
    endif()
  endforeach()
endforeach()
if(TARGET libtorch)
  target_link_libraries(libtorch PRIVATE torch)
  set_target_properties(libtorch PROPERTIES UNITY_BUILD OFF) # Only model.cpp reads its headers.
endif()

# -- cli/: program `troupe` ----------------------------------------------------

file(GLOB cli_sources CONFIGURE_DEPENDS cli/*.cpp cli/chaos/*.cpp cli/plan/*.cpp)
list(REMOVE_ITEM cli_sources ${PROJECT_SOURCE_DIR}/cli/main.cpp)
troupe_order_sources(cli_sources)
add_library(troupe_cli STATIC ${cli_sources})
target_link_libraries(troupe_cli PUBLIC Troupe::actors)
# Commands of `troupe` need no speed, and -O1 compiles them faster.
target_compile_options(troupe_cli PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
add_executable(troupe cli/main.cpp)
target_link_libraries(troupe PRIVATE troupe_cli)

# -- cli/sim/: program `troupe_sim`, with deciders of its own that can make planted mistakes ------

file(GLOB sim_sources CONFIGURE_DEPENDS cli/sim/*.cpp cli/sim/*/*.cpp actors/protocol/*.cpp
     actors/protocol/*/*.cpp)
add_executable(troupe_sim ${sim_sources})
target_compile_definitions(troupe_sim PRIVATE TROUPE_MUTATIONS)
# With this <cassert>, a broken assert is a violation of a history's seed, in every build type.
target_include_directories(troupe_sim BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/cli/sim/asserts)
target_link_libraries(troupe_sim PRIVATE Troupe::serialization
                      fmt::fmt CLI11::CLI11 Threads::Threads)

# -- what scripts/demo builds --------------------------------------------------

add_custom_target(demo DEPENDS async_sgd fit_line troupe)
