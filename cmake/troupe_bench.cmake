# Benchmarks: programs of bench/, run small by ctest. A program is its main file and those that it
# names here; what they share is troupe_bench.

find_library(TROUPE_ZEROMQ zmq)
find_path(TROUPE_ZEROMQ_INCLUDE zmq.h)
find_library(TROUPE_CAF_IO caf_io REQUIRED)
mark_as_advanced(TROUPE_ZEROMQ TROUPE_ZEROMQ_INCLUDE TROUPE_CAF_IO)

set(bench ${PROJECT_SOURCE_DIR}/bench)
add_library(troupe_bench STATIC ${bench}/child.cpp ${bench}/network_namespace.cpp
  ${bench}/options.cpp ${bench}/raw_socket.cpp ${bench}/report.cpp)
target_include_directories(troupe_bench PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(troupe_bench PUBLIC nlohmann_json::nlohmann_json fmt::fmt CLI11::CLI11)
if(TROUPE_ZEROMQ AND TROUPE_ZEROMQ_INCLUDE)
  target_sources(troupe_bench PRIVATE ${bench}/zeromq.cpp)
  target_compile_definitions(troupe_bench PUBLIC TROUPE_BENCH_ZEROMQ)
  target_include_directories(troupe_bench SYSTEM PUBLIC ${TROUPE_ZEROMQ_INCLUDE})
  target_link_libraries(troupe_bench PUBLIC ${TROUPE_ZEROMQ})
endif()

# troupe_add_bench(<program> <file>...): from bench/<program>.cpp and the files.
function(troupe_add_bench program)
  add_executable(${program} ${bench}/${program}.cpp ${ARGN})
  # At -O2, GCC 12 vectorises no loop whose number of rounds it does not know.
  target_compile_options(${program} PRIVATE -O3)
  target_link_libraries(${program} PRIVATE troupe_bench Troupe::actors)
endfunction()

# troupe_add_bench_test(<name> <program> ROWS <row>... BELOW <key>=<limit> ARGUMENTS <word>...): a
# short run whose output has those rows, with figures above 0, and the one of that key below it.
function(troupe_add_bench_test name program)
  cmake_parse_arguments(arg "" BELOW "ROWS;ARGUMENTS" ${ARGN})
  add_test(NAME bench.${name}
           COMMAND Python3::Interpreter ${bench}/smoke_test.py $<TARGET_FILE:${program}>
                   --rows ${arg_ROWS} --below=${arg_BELOW}= --arguments ${arg_ARGUMENTS})
  set_tests_properties(bench.${name} PROPERTIES TIMEOUT 60 LABELS bench SKIP_RETURN_CODE 77)
endfunction()

# -- optimizer_bench -----------------------------------------------------------

add_executable(optimizer_bench ${bench}/optimizer_bench.cpp)
target_include_directories(optimizer_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(optimizer_bench PRIVATE Troupe::kernels)
add_test(NAME bench.optimizer_bench COMMAND optimizer_bench)
set_tests_properties(bench.optimizer_bench PROPERTIES TIMEOUT 60 LABELS bench)

# -- sparse_bench --------------------------------------------------------------

add_executable(sparse_bench ${bench}/sparse_bench.cpp)
target_include_directories(sparse_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(sparse_bench PRIVATE Troupe::actors)
add_test(NAME bench.sparse_bench COMMAND sparse_bench)
set_tests_properties(bench.sparse_bench PROPERTIES TIMEOUT 60 LABELS bench)

# -- links_bench ---------------------------------------------------------------

set(zeromq_rows "")
file(GLOB link_sources CONFIGURE_DEPENDS ${bench}/link_*.cpp)
list(FILTER link_sources EXCLUDE REGEX link_kills) # A program of its own.
if(TROUPE_ZEROMQ AND TROUPE_ZEROMQ_INCLUDE)
  set(zeromq_rows zeromq zeromq-tuned)
else()
  list(FILTER link_sources EXCLUDE REGEX zeromq)
endif()
troupe_add_bench(links_bench ${link_sources})
target_link_libraries(links_bench PRIVATE ${TROUPE_CAF_IO})
troupe_add_bench_test(links_bench links_bench
  ROWS memcpy read troupe troupe-tcp memfd tcp-reno unix caf ${zeromq_rows}
  ARGUMENTS --rounds 1 --sizes 4,65536)

# -- push_pull -----------------------------------------------------------------

# Servers of Troupe without a cluster, for push_pull and local_bench.
add_library(troupe_bench_store STATIC ${bench}/kv_requests.cpp ${bench}/server_host.cpp
  ${bench}/transport_kinds.cpp)
target_link_libraries(troupe_bench_store PUBLIC troupe_bench Troupe::actors)

file(GLOB store_sources CONFIGURE_DEPENDS ${bench}/store_*.cpp)
if(NOT zeromq_rows)
  list(FILTER store_sources EXCLUDE REGEX zeromq)
endif()
troupe_add_bench(push_pull ${store_sources})
target_link_libraries(push_pull PRIVATE troupe_bench_store)
troupe_add_bench_test(push_pull push_pull
  ROWS troupe troupe-remote troupe-lists troupe-tcp troupe-tls ${zeromq_rows}
  ARGUMENTS --rounds 1 --sizes 4,65536 --windows 1,8 --queued 8)
troupe_add_bench_test(push_pull.sparse push_pull
  ROWS troupe troupe-remote ${zeromq_rows}
  ARGUMENTS --rounds 1 --sparse 10000 --sizes 6400 --windows 1,8)
troupe_add_bench_test(push_pull.freeze push_pull
  ROWS troupe ARGUMENTS --only troupe --freeze 1)

# -- local_bench ---------------------------------------------------------------

troupe_add_bench(local_bench ${bench}/allocations.cpp)
target_link_libraries(local_bench PRIVATE troupe_bench_store)
troupe_add_bench_test(local_bench local_bench
  ROWS "server actor" "plain calls" BELOW allocated_bytes=65536
  ARGUMENTS --rounds 1 --sizes 4096,4194304)

# -- link_kills ----------------------------------------------------------------

troupe_add_bench(link_kills ${bench}/kill_ends.cpp ${bench}/kill_pushes.cpp
  ${bench}/kill_rounds.cpp ${bench}/kill_traffic.cpp ${bench}/process_state.cpp)
target_link_libraries(link_kills PRIVATE troupe_bench_store)
troupe_add_bench_test(link_kills link_kills
  ROWS arena unix tcp tls
  ARGUMENTS --rounds 2 --seed 1)

# -- checkpoint_trials ---------------------------------------------------------

troupe_add_bench(checkpoint_trials ${bench}/checkpoint_damage.cpp ${bench}/damage_trials.cpp
  ${bench}/local_servers.cpp ${bench}/restore_trials.cpp)
add_test(NAME bench.checkpoint_trials COMMAND checkpoint_trials)
set_tests_properties(bench.checkpoint_trials PROPERTIES TIMEOUT 120 LABELS bench)

# -- torch_bench.py ------------------------------------------------------------

set(torch_rows "")
if(EXISTS /usr/lib/python3/dist-packages/torch)
  set(torch_rows torch torch-ddp torch-rpc)
endif()
if(TARGET async_sgd AND TARGET plain_loop)
  add_test(NAME bench.torch_bench
    COMMAND Python3::Interpreter ${bench}/smoke_test.py ${bench}/torch_bench.py
            --rows plain plain-x2 troupe troupe-ahead ${torch_rows}
            --arguments ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --rounds 1 --batch 256 --samples 6000
                        --seconds 0.2)
  set_tests_properties(bench.torch_bench PROPERTIES TIMEOUT 180 LABELS "bench;slow")
endif()

# -- scripts that disturb whole jobs -------------------------------------------

# troupe_add_script_test(<script> <word>...): bench/<script>.py, small; it judges itself. Where it
# lacks data or rights it says so and counts as skipped.
function(troupe_add_script_test script)
  add_test(NAME bench.${script}
           COMMAND Python3::Interpreter ${bench}/${script}.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(bench.${script} PROPERTIES
    TIMEOUT 300 LABELS "bench;slow" RUN_SERIAL ON SKIP_RETURN_CODE 77)
endfunction()

if(TARGET async_sgd AND TARGET count_batches)
  troupe_add_script_test(failover --kills 2)
  troupe_add_script_test(lossy_training bsp --kills 1)
  troupe_add_script_test(safety_cost replicas --rounds 1 --passes 1)
  # All runners take minutes; of this one the matrix has to understand every row.
  troupe_add_script_test(fault_matrix --quick --only sim --minimum F9=1 F10=1 F12=1 F15=1 F18=1)
endif()
