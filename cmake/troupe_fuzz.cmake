# Adds one libFuzzer program for each decoder, tests/<component>/x_fuzz.cpp. clang++ compiles them
# and the code they test with sanitizers, beside the build's compiler. That code is base/,
# serialization/, storage/, actors/transport/ and packed values. ctest runs each program for a
# second; run bin/x_fuzz by hand to search longer. Only ctest and target `fuzzers` build them. The
# target exists even if no program can be built.

add_custom_target(fuzzers)

file(GLOB fuzzers CONFIGURE_DEPENDS tests/*/*_fuzz.cpp)
if(NOT fuzzers)
  return()
endif()

get_target_property(hwy_definitions Troupe::hwy INTERFACE_COMPILE_DEFINITIONS)
list(TRANSFORM hwy_definitions PREPEND -D)
set(fuzz_flags ${hwy_definitions} -std=c++20 -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all
    -ffp-contract=off -I${PROJECT_SOURCE_DIR} -I${PROJECT_BINARY_DIR}/generated)

find_program(TROUPE_CLANG NAMES clang++ clang++-14)
mark_as_advanced(TROUPE_CLANG)
if(TROUPE_CLANG AND NOT DEFINED TROUPE_LIBFUZZER)
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/fuzz_probe)
  file(WRITE ${probe}.cpp
    "#include <cstdint>\n#include <cstddef>\n"
    "extern \"C\" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }\n")
  execute_process(
    COMMAND ${TROUPE_CLANG} -fsanitize=fuzzer,address,undefined ${probe}.cpp -o ${probe}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(TROUPE_LIBFUZZER ON CACHE INTERNAL "clang++ links libFuzzer")
  endif()
endif()
if(NOT TROUPE_LIBFUZZER)
  message(STATUS "Fuzzing: no clang++ with libFuzzer (packages clang, libclang-rt-14-dev): "
                 "fuzz targets are left out")
  return()
endif()
message(STATUS "Fuzzing: ${TROUPE_CLANG}")

# Compiles one source to an object. The dependency file tells ninja its headers.
function(troupe_fuzz_object source object sanitizers)
  cmake_path(GET object PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${TROUPE_CLANG} ${fuzz_flags} -fsanitize=${sanitizers}
            -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} troupe_serialization_schemas DEPFILE ${object}.d
    COMMENT "Compiling for fuzzing ${source}" VERBATIM)
endfunction()

# Adds files to `fuzzed` that have no line matching the expression.
#
# troupe_fuzz_sources(<expression> <pattern>...)
macro(troupe_fuzz_sources excluding)
  file(GLOB candidates CONFIGURE_DEPENDS ${ARGN})
  foreach(source IN LISTS candidates)
    file(STRINGS ${source} excluded REGEX ${excluding})
    if(NOT excluded)
      list(APPEND fuzzed ${source})
    endif()
  endforeach()
endmacro()

set(fuzzed "")
set(fuzzed_kernels "")
troupe_fuzz_sources("#include \"fmt/" base/*.cpp base/system/*.cpp)
list(APPEND fuzzed ${PROJECT_SOURCE_DIR}/base/system/resource_limits.cpp) # Named threads need it.
troupe_fuzz_sources("#include \"fmt/" serialization/*.cpp serialization/detail/*.cpp)
if(fuzzers MATCHES "tests/storage/")
  foreach(name IN ITEMS tensor_file regular_file file_content detail/npy detail/npz detail/safetensors
                        detail/safetensors_header detail/tensor_bytes)
    list(APPEND fuzzed ${PROJECT_SOURCE_DIR}/storage/${name}.cpp)
  endforeach()
endif()
if(fuzzers MATCHES "tests/examples/")
  foreach(name IN ITEMS csv csv_file csv_header csv_records input_file labels libsvm mnist packing
                        remarks text_lines unpackers)
    list(APPEND fuzzed ${PROJECT_SOURCE_DIR}/examples/02_async_sgd/data/${name}.cpp)
  endforeach()
endif()
if(fuzzers MATCHES "tests/actors/")
  troupe_fuzz_sources("#include \"fmt/" actors/transport/*.cpp actors/transport/*/*.cpp
                      actors/roles/links/key_cache.cpp)
  list(APPEND fuzzed ${PROJECT_SOURCE_DIR}/actors/tables/packing.cpp
       ${PROJECT_SOURCE_DIR}/kernels/schedules/schedule.cpp)
  foreach(kernel IN ITEMS half int8 onebit sparsify)
    list(APPEND fuzzed_kernels ${PROJECT_SOURCE_DIR}/kernels/${kernel}_cpu.cpp)
  endforeach()
endif()
get_target_property(all_sources troupe_serialization SOURCES)
list(FILTER all_sources INCLUDE REGEX "\\.c\\+\\+$")
troupe_order_sources(fuzzed)

# Makes unity batches as in the release preset. Schemas and kernels are no part of them, as Highway
# compiles a kernel once for each kind of processor.
set(batch_size ${CMAKE_UNITY_BUILD_BATCH_SIZE})
if(NOT CMAKE_UNITY_BUILD)
  set(batch_size 1)
endif()
set(units ${fuzzed_kernels} ${all_sources})
list(LENGTH fuzzed count)
math(EXPR last "${count} - 1")
foreach(begin RANGE 0 ${last} ${batch_size})
  list(SUBLIST fuzzed ${begin} ${batch_size} batch)
  list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"")
  list(JOIN batch "\n" text)
  set(unit ${PROJECT_BINARY_DIR}/fuzz/batch_${begin}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "${text}\n" @ONLY)
  list(APPEND units ${unit})
endforeach()
set(objects "")
foreach(source IN LISTS units)
  cmake_path(GET source FILENAME name)
  set(object ${PROJECT_BINARY_DIR}/fuzz/${name}.o)
  troupe_fuzz_object(${source} ${object} fuzzer-no-link,address,undefined)
  list(APPEND objects ${object})
endforeach()
set(library ${PROJECT_BINARY_DIR}/fuzz/libfuzzed.a)
add_custom_command(
  OUTPUT ${library}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${library}
  COMMAND ${CMAKE_AR} cr ${library} ${objects}
  DEPENDS ${objects} COMMENT "Linking libfuzzed.a" VERBATIM)

set(programs "")
foreach(fuzzer IN LISTS fuzzers)
  cmake_path(GET fuzzer STEM name)
  cmake_path(GET fuzzer PARENT_PATH folder)
  cmake_path(GET folder FILENAME component)
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  troupe_fuzz_object(${fuzzer} ${PROJECT_BINARY_DIR}/fuzz/${name}.o
                     fuzzer,address,undefined)
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${TROUPE_CLANG} -fsanitize=fuzzer,address,undefined
            ${PROJECT_BINARY_DIR}/fuzz/${name}.o ${library} ${TROUPE_capnp_LIBRARY}
            ${TROUPE_kj_LIBRARY} ${TROUPE_hwy_LIBRARY} ${TROUPE_zip_LIBRARY} ${ZLIB_LIBRARIES}
            ${TROUPE_bz2_LIBRARY} ${TROUPE_lzma_LIBRARY} ${OPENSSL_LIBRARIES}
            $<TARGET_FILE:fmt::fmt> -lpthread -o ${program}
    DEPENDS ${PROJECT_BINARY_DIR}/fuzz/${name}.o ${library} COMMENT "Linking ${name}" VERBATIM)
  list(APPEND programs ${program})

  # New inputs go to the build tree; tests/<component>/corpus/<name>/ holds inputs worth keeping.
  set(corpus ${PROJECT_BINARY_DIR}/fuzz/corpus/${name})
  file(MAKE_DIRECTORY ${corpus})
  set(seeds ${folder}/corpus/${name})
  if(NOT EXISTS ${seeds})
    set(seeds "")
  endif()
  add_test(NAME ${component}.${name}
           COMMAND ${program} -max_total_time=1 -rss_limit_mb=4096 -verbosity=0
                   -artifact_prefix=${corpus}- ${corpus} ${seeds})
  set_tests_properties(${component}.${name} PROPERTIES TIMEOUT 60 LABELS fuzz FIXTURES_REQUIRED fuzzers)
endforeach()
add_custom_target(fuzz_programs DEPENDS ${programs})
add_dependencies(fuzzers fuzz_programs)
troupe_add_build_test(fuzzers fuzz)
