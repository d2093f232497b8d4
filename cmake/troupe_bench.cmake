# Adds the benchmarks of bench/, which ctest runs small. Only ctest and target `benchmarks` build
# them. A program has a main file and the files that it names here; troupe_bench holds shared files.

get_directory_property(targets_before BUILDSYSTEM_TARGETS)
get_directory_property(tests_before TESTS)

find_library(TROUPE_ZEROMQ zmq)
find_path(TROUPE_ZEROMQ_INCLUDE zmq.h)
find_library(TROUPE_CAF_IO caf_io REQUIRED)
mark_as_advanced(TROUPE_ZEROMQ TROUPE_ZEROMQ_INCLUDE TROUPE_CAF_IO)

set(bench ${PROJECT_SOURCE_DIR}/bench)
add_library(troupe_bench STATIC ${bench}/child.cpp ${bench}/links/network_namespace.cpp
  ${bench}/machine_load.cpp ${bench}/options.cpp ${bench}/links/raw_socket.cpp ${bench}/report.cpp)
target_include_directories(troupe_bench PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(troupe_bench PUBLIC nlohmann_json::nlohmann_json fmt::fmt CLI11::CLI11)
if(TROUPE_ZEROMQ AND TROUPE_ZEROMQ_INCLUDE)
  target_sources(troupe_bench PRIVATE ${bench}/zeromq.cpp)
  target_compile_definitions(troupe_bench PUBLIC TROUPE_BENCH_ZEROMQ)
  target_include_directories(troupe_bench SYSTEM PUBLIC ${TROUPE_ZEROMQ_INCLUDE})
  target_link_libraries(troupe_bench PUBLIC ${TROUPE_ZEROMQ})
endif()

# Adds a program of bench/<room>/<program>.cpp and the files.
#
# troupe_add_bench(<room> <program> <file>...)
function(troupe_add_bench room program)
  add_executable(${program} ${bench}/${room}/${program}.cpp ${ARGN})
  # At -O2, GCC 12 vectorises no loop with an unknown number of rounds.
  target_compile_options(${program} PRIVATE -O3)
  target_link_libraries(${program} PRIVATE troupe_bench Troupe::actors)
endfunction()

# Adds a short run. Its output must have the rows, with figures above 0, and each figure `key` below
# the limit.
#
# troupe_add_bench_test(<name> <program> ROWS <row>... BELOW <key>=<limit> ARGUMENTS <word>...)
function(troupe_add_bench_test name program)
  cmake_parse_arguments(arg "" BELOW "ROWS;ARGUMENTS" ${ARGN})
  add_test(NAME bench.${name}
           COMMAND Python3::Interpreter ${bench}/smoke_test.py $<TARGET_FILE:${program}>
                   --rows ${arg_ROWS} --below=${arg_BELOW}= --arguments ${arg_ARGUMENTS})
  set_tests_properties(bench.${name} PROPERTIES TIMEOUT 60 LABELS bench SKIP_RETURN_CODE 77)
endfunction()

# -- kernels_bench -------------------------------------------------------------

add_executable(kernels_bench ${bench}/kernels/kernels_bench.cpp ${bench}/kernels/kernels_codecs.cpp
  ${bench}/kernels/kernels_functions.cpp ${bench}/kernels/kernels_loops.cpp
  ${bench}/kernels/kernels_troupe.cpp)
target_compile_options(kernels_bench PRIVATE -O3)
target_link_libraries(kernels_bench PRIVATE troupe_bench Troupe::kernels)
set(kernels_contestants memory troupe function loop)
if(TARGET troupe_example_sgd) # This target exists only if OpenBLAS was found.
  target_sources(kernels_bench PRIVATE ${bench}/kernels/kernels_openblas.cpp)
  target_compile_definitions(kernels_bench PRIVATE TROUPE_BENCH_OPENBLAS)
  target_include_directories(kernels_bench SYSTEM PRIVATE ${TROUPE_CBLAS_INCLUDE})
  target_link_libraries(kernels_bench PRIVATE ${TROUPE_OPENBLAS})
  list(APPEND kernels_contestants openblas)
endif()
find_path(TROUPE_EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3)
mark_as_advanced(TROUPE_EIGEN_INCLUDE)
if(TROUPE_EIGEN_INCLUDE)
  target_sources(kernels_bench PRIVATE ${bench}/kernels/kernels_eigen.cpp)
  # Eigen is fast only if compiled for this CPU. GCC 12 takes its intrinsics for uninitialised.
  set_source_files_properties(${bench}/kernels/kernels_eigen.cpp PROPERTIES
    COMPILE_OPTIONS "-march=native;-Wno-uninitialized;-Wno-maybe-uninitialized")
  target_compile_definitions(kernels_bench PRIVATE TROUPE_BENCH_EIGEN)
  target_include_directories(kernels_bench SYSTEM PRIVATE ${TROUPE_EIGEN_INCLUDE})
  list(APPEND kernels_contestants eigen)
endif()
troupe_add_bench_test(kernels_bench kernels_bench
  ROWS ${kernels_contestants} ARGUMENTS --any-load --rounds 1 --sizes 4096)

# -- sparse_bench --------------------------------------------------------------

add_executable(sparse_bench ${bench}/store/sparse_bench.cpp)
target_include_directories(sparse_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(sparse_bench PRIVATE Troupe::actors CLI11::CLI11)
add_test(NAME bench.sparse_bench COMMAND sparse_bench)
set_tests_properties(bench.sparse_bench PROPERTIES TIMEOUT 60 LABELS bench)

# -- links_bench ---------------------------------------------------------------

set(zeromq_rows "")
file(GLOB link_sources CONFIGURE_DEPENDS ${bench}/links/link_*.cpp)
if(TROUPE_ZEROMQ AND TROUPE_ZEROMQ_INCLUDE)
  set(zeromq_rows zeromq zeromq-tuned)
else()
  list(FILTER link_sources EXCLUDE REGEX zeromq)
endif()
troupe_add_bench(links links_bench ${bench}/links/channel_member.cpp ${link_sources})
target_link_libraries(links_bench PRIVATE ${TROUPE_CAF_IO})
troupe_add_bench_test(links_bench links_bench
  ROWS memcpy read troupe troupe-tcp troupe-threads channel channel-tcp memfd tcp-reno unix caf ${zeromq_rows}
  ARGUMENTS --any-load --rounds 1 --sizes 4,65536)

troupe_add_bench(links channels_bench ${bench}/links/channel_member.cpp)
troupe_add_bench_test(channels_bench channels_bench
  ROWS 1-to-1 4-to-1 standing-still
  ARGUMENTS --any-load --rounds 1 --sizes 65536 --still 1)

# -- push_pull -----------------------------------------------------------------

# Hosts servers of Troupe without a cluster, for push_pull and local_bench.
add_library(troupe_bench_store STATIC ${bench}/store/kv_requests.cpp ${bench}/store/server_host.cpp
  ${bench}/store/transport_kinds.cpp)
target_link_libraries(troupe_bench_store PUBLIC troupe_bench Troupe::actors)

file(GLOB store_sources CONFIGURE_DEPENDS ${bench}/store/store_*.cpp)
if(NOT zeromq_rows)
  list(FILTER store_sources EXCLUDE REGEX zeromq)
endif()
troupe_add_bench(store push_pull ${store_sources})
target_link_libraries(push_pull PRIVATE troupe_bench_store)
troupe_add_bench_test(push_pull push_pull
  ROWS troupe troupe-remote troupe-lists troupe-tcp troupe-tls ${zeromq_rows}
  ARGUMENTS --any-load --rounds 1 --sizes 4,65536 --windows 1,8 --queued 8)
troupe_add_bench_test(push_pull.sparse push_pull
  ROWS troupe troupe-remote ${zeromq_rows}
  ARGUMENTS --any-load --rounds 1 --sparse 10000 --sizes 6400 --windows 1,8)
troupe_add_bench_test(push_pull.freeze push_pull
  ROWS troupe ARGUMENTS --any-load --only troupe --freeze 1)

# -- local_bench ---------------------------------------------------------------

troupe_add_bench(store local_bench ${bench}/store/allocations.cpp)
target_link_libraries(local_bench PRIVATE troupe_bench_store)
troupe_add_bench_test(local_bench local_bench
  ROWS "server actor" "1 stage before it" "3 stages before it" "plain calls" BELOW allocated_bytes=65536
  ARGUMENTS --rounds 1 --sizes 4096,4194304)

# -- link_kills ----------------------------------------------------------------

troupe_add_bench(kills link_kills ${bench}/kills/kill_ends.cpp ${bench}/kills/kill_pushes.cpp
  ${bench}/kills/kill_rounds.cpp ${bench}/kills/kill_traffic.cpp ${bench}/kills/process_state.cpp)
target_link_libraries(link_kills PRIVATE troupe_bench_store)
troupe_add_bench_test(link_kills link_kills
  ROWS arena unix tcp tls
  ARGUMENTS --rounds 2 --seed 1)

# -- checkpoint_trials ---------------------------------------------------------

troupe_add_bench(checkpoints checkpoint_trials ${bench}/checkpoints/checkpoint_damage.cpp ${bench}/checkpoints/damage_trials.cpp
  ${bench}/checkpoints/local_servers.cpp ${bench}/checkpoints/restore_trials.cpp)
add_test(NAME bench.checkpoint_trials COMMAND checkpoint_trials)
set_tests_properties(bench.checkpoint_trials PROPERTIES TIMEOUT 120 LABELS bench)

# -- all_reduce.py -------------------------------------------------------------

# Contestants are separate programs, because mpirun starts Open MPI's.
add_executable(all_reduce_team ${bench}/all_reduce/all_reduce_team.cpp)
target_link_libraries(all_reduce_team PRIVATE Troupe::kernels CLI11::CLI11 Threads::Threads)
target_include_directories(all_reduce_team PRIVATE ${PROJECT_SOURCE_DIR})
troupe_add_bench(all_reduce all_reduce_links)
set(all_reduce_rows troupe-threads troupe-shared troupe-private troupe-private-asleep
    troupe-links-arena troupe-links-tcp)
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  add_executable(all_reduce_mpi ${bench}/all_reduce/all_reduce_mpi.cpp)
  target_compile_definitions(all_reduce_mpi PRIVATE OMPI_SKIP_MPICXX)
  target_link_libraries(all_reduce_mpi PRIVATE MPI::MPI_CXX CLI11::CLI11)
  target_include_directories(all_reduce_mpi PRIVATE ${PROJECT_SOURCE_DIR})
endif()
find_library(TROUPE_GLOO gloo)
find_path(TROUPE_GLOO_INCLUDE gloo/context.h)
mark_as_advanced(TROUPE_GLOO TROUPE_GLOO_INCLUDE)
if(TROUPE_GLOO AND TROUPE_GLOO_INCLUDE)
  add_executable(all_reduce_gloo ${bench}/all_reduce/all_reduce_gloo.cpp)
  target_link_libraries(all_reduce_gloo PRIVATE ${TROUPE_GLOO} CLI11::CLI11 Threads::Threads)
  target_include_directories(all_reduce_gloo PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(all_reduce_gloo SYSTEM PRIVATE ${TROUPE_GLOO_INCLUDE})
  list(APPEND all_reduce_rows gloo-ring_chunked)
endif()
add_test(NAME bench.all_reduce
  COMMAND Python3::Interpreter ${bench}/smoke_test.py ${bench}/all_reduce/all_reduce.py
          --rows ${all_reduce_rows}
          --arguments ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --any-load --rounds 1 --sizes 1024,1048576
                      --ranks 2 --settings one --seconds 0.02)
set_tests_properties(bench.all_reduce PROPERTIES TIMEOUT 60 LABELS bench)

# -- torch_bench.py ------------------------------------------------------------

set(torch_rows "")
if(EXISTS /usr/lib/python3/dist-packages/torch)
  set(torch_rows torch torch-ddp torch-rpc)
endif()
if(TARGET async_sgd AND TARGET plain_loop)
  add_test(NAME bench.torch_bench
    COMMAND Python3::Interpreter ${bench}/smoke_test.py ${bench}/training/torch_bench.py
            --rows plain plain-x2 troupe troupe-ahead ${torch_rows}
            --arguments ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --any-load --rounds 1 --batch 256
                        --samples 6000 --seconds 0.2)
  set_tests_properties(bench.torch_bench PROPERTIES TIMEOUT 180 LABELS "bench;slow")
endif()

# -- pipelines.py --------------------------------------------------------------

troupe_add_bench(training pipeline_bench)
add_test(NAME bench.pipelines
  COMMAND Python3::Interpreter ${bench}/smoke_test.py ${bench}/training/pipelines.py
          --rows "2 parts, 1f1b" "2 parts, fill-drain" --below=idle=0.9
          --arguments ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} idle --any-load --rounds 1 --seconds 0.1
                      --parts 2 --micro-batches 1 2)
add_test(NAME bench.pipelines.link
  COMMAND Python3::Interpreter ${bench}/smoke_test.py ${bench}/training/pipelines.py
          --rows "2 parts, 1f1b, ahead 2" "2 parts, 1f1b, ahead 0" "2 parts, fill-drain"
          --arguments ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} link --any-load --rounds 1 --seconds 0.1
                      --micro-batches 4 --part-ms 1.5)
set_tests_properties(bench.pipelines bench.pipelines.link PROPERTIES TIMEOUT 60 LABELS bench
                     SKIP_RETURN_CODE 77)

# -- scripts that disturb whole jobs -------------------------------------------

# Adds a small run of bench/<room>/<script>.py, whose exit status is the result. Its figures are not
# looked at, so it runs beside other tests. A script that lacks data or rights says so and counts as
# skipped.
#
# troupe_add_script_test(<room> <script> <word>...)
function(troupe_add_script_test room script)
  add_test(NAME bench.${script}
           COMMAND Python3::Interpreter ${bench}/${room}/${script}.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(bench.${script} PROPERTIES
    TIMEOUT 300 LABELS "bench;slow" COST 20 SKIP_RETURN_CODE 77)
endfunction()

if(TARGET async_sgd AND TARGET gossip)
  troupe_add_script_test(training gossip --quick)
endif()
if(TARGET async_sgd AND TARGET count_batches)
  troupe_add_script_test(kills failover --kills 2)
  troupe_add_script_test(faults lossy_training bsp --kills 1 --pause-s 0.5)
  troupe_add_script_test(faults safety_cost replicas --rounds 1 --passes 1)
  # All runners take minutes, so only `sim` runs. The matrix has to parse each of its rows.
  troupe_add_script_test(faults fault_matrix --quick --only sim --minimum F9=1 F10=1 F12=1 F15=1 F18=1)
endif()

# -- cuda_bench ----------------------------------------------------------------

troupe_add_bench(kernels cuda_bench)
add_test(NAME bench.cuda_bench COMMAND cuda_bench)
add_test(NAME bench.cuda_bench.emulated COMMAND cuda_bench --emulate --json)
set_tests_properties(bench.cuda_bench bench.cuda_bench.emulated PROPERTIES TIMEOUT 60 LABELS bench
                     SKIP_REGULAR_EXPRESSION "not run on a GPU")

# -- all of them ---------------------------------------------------------------

get_directory_property(programs BUILDSYSTEM_TARGETS)
list(REMOVE_ITEM programs ${targets_before})
set_target_properties(${programs} PROPERTIES EXCLUDE_FROM_ALL ON)
add_custom_target(benchmarks DEPENDS ${programs} troupe troupe_sim)
foreach(program IN ITEMS async_sgd count_batches plain_loop)
  if(TARGET ${program})
    add_dependencies(benchmarks ${program})
  endif()
endforeach()
get_directory_property(benchmark_tests TESTS)
if(tests_before)
  list(REMOVE_ITEM benchmark_tests ${tests_before})
endif()
set_tests_properties(${benchmark_tests} PROPERTIES FIXTURES_REQUIRED benchmarks)
troupe_add_build_test(benchmarks bench)
