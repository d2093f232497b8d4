# Builds program troupe_<component>_tests of all *_test.cpp below tests/<component>/. Each file has an
# entry in ctest.

add_library(troupe_test_main OBJECT tests/main.cpp)
target_link_libraries(troupe_test_main PUBLIC doctest::doctest)
# Tests need less speed than programs, and -O1 compiles them faster.
target_compile_options(troupe_test_main PUBLIC $<$<CONFIG:RelWithDebInfo>:-O1>)
# Without it, each assertion has code of its own: test files take 20 % longer to compile.
target_compile_definitions(troupe_test_main PUBLIC DOCTEST_CONFIG_SUPER_FAST_ASSERTS)

# Adds a ctest entry for each test file. The cases in TEST_SUITE("slow") are an entry with the label
# slow. A test that prints "SKIPPED:" counts as skipped. A further argument is a label for all.
function(troupe_discover_tests target prefix)
  set(list ${PROJECT_BINARY_DIR}/${target}_list.cmake)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/list_test_cases.py
            $<TARGET_FILE:${target}> ${prefix} ${list} ${ARGN}
    BYPRODUCTS ${list} VERBATIM)
  set(include ${PROJECT_BINARY_DIR}/${target}_include.cmake)
  file(WRITE ${include}
    "if(EXISTS \"${list}\")\n  include(\"${list}\")\n"
    "else()\n  add_test(${target}_is_not_built ${target}_is_not_built)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

function(troupe_add_tests component)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/${component}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  set(target troupe_${component}_tests)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE troupe_test_main ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE
    TROUPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    TROUPE_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set(label "")
  if(component STREQUAL "cuda")
    set(label cuda)
  endif()
  troupe_discover_tests(${target} ${component} ${label})
endfunction()

troupe_add_tests(base Troupe::base)
troupe_add_tests(serialization Troupe::serialization)
troupe_add_tests(kernels Troupe::kernels Troupe::hwy)
# tests/cuda/ runs twice: on emulated devices, and on CUDA devices if there are any.
troupe_add_tests(cuda Troupe::kernels)
file(GLOB on_devices CONFIGURE_DEPENDS tests/cuda/*_test.cpp)
target_sources(troupe_kernels_tests PRIVATE ${on_devices} tests/cuda/under_test_emulated.cpp)
target_sources(troupe_cuda_tests PRIVATE tests/cuda/under_test_cuda.cpp tests/cuda/nccl_on_cuda.cpp)
add_library(nccl_stand_in MODULE tests/kernels/nccl_stand_in.cpp)
target_include_directories(nccl_stand_in PRIVATE ${PROJECT_SOURCE_DIR})
add_dependencies(troupe_kernels_tests nccl_stand_in)
target_compile_definitions(troupe_kernels_tests PRIVATE
  TROUPE_NCCL_STAND_IN="$<TARGET_FILE:nccl_stand_in>")
find_program(TROUPE_COMPUTE_SANITIZER compute-sanitizer HINTS ${TROUPE_CUDA_ROOT}/bin)
mark_as_advanced(TROUPE_COMPUTE_SANITIZER)
if(TROUPE_COMPUTE_SANITIZER)
  # NCCL asks CUDA for kernels that it lacks, which memcheck reports as errors.
  add_test(NAME cuda.compute_sanitizer
           COMMAND ${TROUPE_COMPUTE_SANITIZER} --error-exitcode 1
                   $<TARGET_FILE:troupe_cuda_tests> --test-case-exclude=*NCCL*)
  set_tests_properties(cuda.compute_sanitizer PROPERTIES TIMEOUT 600 LABELS "cuda;slow"
                       SKIP_REGULAR_EXPRESSION SKIPPED:)
endif()
if(TROUPE_CUDA_COMPILER)
  add_test(NAME cuda.architectures
           COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/cuda/architectures.py
                   $<TARGET_FILE:troupe_cuda_tests> ${TROUPE_CUDA_ARCHITECTURE_LIST})
  set_tests_properties(cuda.architectures PROPERTIES LABELS cuda)
endif()
troupe_add_tests(storage Troupe::storage Troupe::httplib ZLIB::ZLIB)
troupe_add_tests(actors Troupe::actors)
get_target_property(precompiled troupe_actors PRECOMPILE_HEADERS)
if(TARGET troupe_actors_tests AND precompiled)
  # The header of troupe_actors is not reused: GCC would also take its optimisation level.
  target_precompile_headers(troupe_actors_tests PRIVATE ${precompiled} <doctest/doctest.h>)
endif()
target_sources(troupe_actors_tests PRIVATE cli/sim/straggler_world.cpp)
troupe_add_tests(cli troupe_cli)
if(TARGET troupe_example_sgd)
  troupe_add_tests(examples troupe_example_sgd)
  troupe_add_tests(distributed troupe_example_sgd)
endif()

# -- programs of tests/distributed: user code that misbehaves, and a push function of parts

file(GLOB misbehave CONFIGURE_DEPENDS tests/misbehave/*.cpp)
add_executable(misbehave ${misbehave})
add_executable(noisy_parts tests/noisy_parts/main.cpp)
foreach(name IN ITEMS misbehave noisy_parts)
  target_link_libraries(${name} PRIVATE Troupe::actors)
endforeach()

# -- tests/distributed/*_test.py: run real processes; take the folder of the programs

# Each class is a test of its own. A changed file may have new classes, so it is read again.
file(GLOB scripts CONFIGURE_DEPENDS tests/distributed/*_test.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts})
set(classes ${PROJECT_BINARY_DIR}/distributed_tests.cmake)
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/list_test_classes.py
                        ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${classes} ${scripts}
                COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${classes})

# -- README.md, docs/guide/*.md, examples/NN_name/README.md: the runs they show ----

# One test for each page, so that a failure names it.
set(blocks Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/console_blocks_test.py)
add_test(NAME console_blocks.self_test COMMAND ${blocks} --self-test)
set(picture Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/graph_picture_test.py)
add_test(NAME graph_picture.self_test COMMAND ${picture} --self-test)
add_test(NAME docs.graph_picture COMMAND ${picture} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
function(troupe_test_page name page)
  add_test(NAME ${name} COMMAND ${blocks} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${page})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 COST 20 ${ARGN})
endfunction()

file(GLOB readmes CONFIGURE_DEPENDS examples/*/README.md)
foreach(readme IN LISTS readmes)
  cmake_path(GET readme PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  if(name STREQUAL "09_libtorch" AND TROUPE_NO_LIBTORCH)
    add_test(NAME examples.${name} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${TROUPE_NO_LIBTORCH}")
    set_tests_properties(examples.${name} PROPERTIES SKIP_REGULAR_EXPRESSION SKIPPED:)
    continue()
  endif()
  troupe_test_page(examples.${name} ${readme})
endforeach()
if(NOT TROUPE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug") # Pages show runs at full speed.
  troupe_test_page(docs.README ${PROJECT_SOURCE_DIR}/README.md)
  file(GLOB pages CONFIGURE_DEPENDS docs/guide/*.md)
  list(REMOVE_ITEM pages ${PROJECT_SOURCE_DIR}/docs/guide/README.md) # The index shows no run.
  foreach(page IN LISTS pages)
    cmake_path(GET page STEM name)
    troupe_test_page(docs.guide.${name} ${page} LABELS slow)
  endforeach()
endif()

include(cmake/troupe_fuzz.cmake)

# -- simulated clusters, and planted mistakes that they have to notice -----------

# `scripts/test --long` runs more seeds. A seed that 1000 divides is run twice, which must be equal.
# Of the planted mistakes that a history can show, the last one is noticed at seed 3612.
set(seeds Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/plain_or_long.py)
add_test(NAME sim COMMAND ${seeds} 1000 5000 $<TARGET_FILE:troupe_sim> --seeds 1..{})
set_tests_properties(sim PROPERTIES TIMEOUT 600 PROCESSORS 2 COST 50)
if(CMAKE_BUILD_TYPE STREQUAL "Debug") # Unoptimised, or with sanitizers.
  set_tests_properties(sim PROPERTIES TIMEOUT 1800)
endif()
add_test(NAME sim.stragglers COMMAND troupe_sim --stragglers --worker-hours 5000)
set_tests_properties(sim.stragglers PROPERTIES TIMEOUT 300 PROCESSORS 2)
add_test(NAME sim.mutants
  COMMAND ${seeds} 5000 5000 $<TARGET_FILE:troupe_sim> --mutants --seeds 1..{})
set_tests_properties(sim.mutants PROPERTIES TIMEOUT 2400 LABELS slow PROCESSORS 2 COST 60)

# -- the tree itself -----------------------------------------------------------

set(tidy Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/tidy_test.py)
add_test(NAME tidy COMMAND ${tidy})
add_test(NAME tidy.self_test COMMAND ${tidy} --self-test)
set(summary ${PROJECT_SOURCE_DIR}/tests/summary.py)
add_test(NAME summary.self_test COMMAND Python3::Interpreter ${summary} --self-test)

# -- docs/reference/options.md: is made from the help texts ------------------------

if(TARGET async_sgd AND TARGET troupe)
  set(reference ${PROJECT_SOURCE_DIR}/docs/reference/options.md)
  add_test(NAME docs.options
           COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/options_reference
                   --check ${reference} $<TARGET_FILE:async_sgd> $<TARGET_FILE:troupe>)
  set_tests_properties(docs.options PROPERTIES TIMEOUT 60 LABELS quick)
endif()

# -- graphs that are wired wrongly ---------------------------------------------

add_test(NAME wiring COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/wiring_test.py
  ${CMAKE_CXX_COMPILER} -std=c++20 -I${PROJECT_SOURCE_DIR})
set_tests_properties(wiring PROPERTIES TIMEOUT 120)

# -- how much the demo is to build ----------------------------------------------

if(CMAKE_UNITY_BUILD AND CMAKE_GENERATOR STREQUAL "Ninja")
  set(count Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/demo_objects_test.py
            ${CMAKE_MAKE_PROGRAM} ${PROJECT_BINARY_DIR})
  add_test(NAME demo_objects COMMAND ${count})
  add_test(NAME demo_objects.can_fail COMMAND ${count} 10)
  set_tests_properties(demo_objects.can_fail PROPERTIES
    PASS_REGULAR_EXPRESSION "put sources into existing unity batches")
endif()

# -- tests/consumer: projects that use the installed package, or the source tree -------

set(prefix ${PROJECT_BINARY_DIR}/consumer/prefix)
set(consumer_flags "")
if(TROUPE_SANITIZE)
  set(consumer_flags -fsanitize=${TROUPE_SANITIZE})
endif()
add_test(NAME install
         COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix})
set_tests_properties(install PROPERTIES TIMEOUT 60 LABELS slow FIXTURES_SETUP installed)
add_test(NAME consumer
  COMMAND ${CMAKE_CTEST_COMMAND}
          --build-and-test ${PROJECT_SOURCE_DIR}/tests/consumer ${PROJECT_BINARY_DIR}/consumer/build
          --build-generator ${CMAKE_GENERATOR}
          --build-options -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
                          -DCMAKE_CXX_FLAGS=${consumer_flags}
          --test-command consumer)
set_tests_properties(consumer PROPERTIES TIMEOUT 180 LABELS slow FIXTURES_REQUIRED installed
                     FIXTURES_SETUP consumer
                     PASS_REGULAR_EXPRESSION "test accuracy 1.0000 after 10 of 10 epochs")
if(NOT TROUPE_SANITIZE) # The interpreter has no runtime of sanitizers.
  add_test(NAME consumer.module
           COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/consumer/module_test.py
                   ${PROJECT_BINARY_DIR}/consumer/build/libline_module.so)
  set_tests_properties(consumer.module PROPERTIES TIMEOUT 60 LABELS slow FIXTURES_REQUIRED consumer)
endif()
add_test(NAME consumer.parent
         COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/consumer/parent_test.py
                 ${PROJECT_BINARY_DIR}/consumer/parent ${CMAKE_COMMAND} ${CMAKE_GENERATOR})
set_tests_properties(consumer.parent PROPERTIES TIMEOUT 60 LABELS slow)
