# Finds the CUDA toolkit and compiles *.cu. Without nvcc they are compiled as C++, which gives only
# the emulation (kernels/launch.inl.hpp).
#
# Sets TROUPE_CUDA_COMPILER, which is empty if CUDA is off or absent. Only the toolkit's static
# runtime is linked. A running program looks for the driver, cuBLAS and NCCL.

set(TROUPE_CUDA_COMPILER "")
set(TROUPE_CUDA_ARCHITECTURES all CACHE STRING
    "Compute capabilities to compile for, e.g. '90'; all: from 75 to 90 whatever nvcc knows")

# Gives up on CUDA for the reason `why`.
macro(troupe_no_cuda why)
  if(NOT TROUPE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TROUPE_CUDA=${TROUPE_CUDA}, but ${why}")
  endif()
  message(STATUS "CUDA: ${why}; CPU only")
  set(TROUPE_CUDA_COMPILER "")
endmacro()

# Prints the place of a library that programs may load.
function(troupe_say_where name file)
  find_library(TROUPE_FOUND_${name} NAMES ${file} HINTS ${TROUPE_CUDA_ROOT}/lib64)
  mark_as_advanced(TROUPE_FOUND_${name})
  if(TROUPE_FOUND_${name})
    message(STATUS "CUDA: ${name} found at ${TROUPE_FOUND_${name}}, loaded at run time")
  else()
    message(STATUS "CUDA: no ${name} found here; programs look for it at run time")
  endif()
endfunction()

if(NOT TROUPE_CUDA STREQUAL "AUTO" AND NOT TROUPE_CUDA)
  message(STATUS "CUDA: off (TROUPE_CUDA=${TROUPE_CUDA})")
else()
  find_program(TROUPE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  mark_as_advanced(TROUPE_NVCC)
  if(NOT TROUPE_NVCC)
    troupe_no_cuda("no nvcc found (CUDA_HOME says where else to look)")
  else()
    set(TROUPE_CUDA_COMPILER ${TROUPE_NVCC})
    cmake_path(GET TROUPE_NVCC PARENT_PATH bin)
    cmake_path(GET bin PARENT_PATH TROUPE_CUDA_ROOT)
    execute_process(COMMAND ${TROUPE_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    string(REGEX MATCH "release [0-9.]+" nvcc_version "${nvcc_version}")
    execute_process(COMMAND ${TROUPE_NVCC} --list-gpu-arch OUTPUT_VARIABLE listed ERROR_QUIET)
    string(REGEX MATCHALL "compute_[0-9]+" listed "${listed}")
    set(architectures "")
    foreach(one IN LISTS listed)
      string(REPLACE "compute_" "" one ${one})
      if(one GREATER_EQUAL 75 AND one LESS_EQUAL 90)
        list(APPEND architectures ${one})
      endif()
    endforeach()
    list(SORT architectures COMPARE NATURAL)
    if(NOT TROUPE_CUDA_ARCHITECTURES STREQUAL "all")
      set(architectures ${TROUPE_CUDA_ARCHITECTURES})
    endif()
    find_library(TROUPE_CUDART cudart_static HINTS ${TROUPE_CUDA_ROOT}/lib64)
    mark_as_advanced(TROUPE_CUDART)
    # Tests whether nvcc works with this C++ compiler.
    set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/cuda_probe)
    if(TROUPE_CUDART AND architectures AND NOT TROUPE_CUDA_PROBED STREQUAL TROUPE_NVCC)
      file(WRITE ${probe}.cu "#include <span>\n__global__ void nothing() {}\n")
      list(GET architectures 0 one)
      execute_process(
        COMMAND ${TROUPE_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++20 -arch=sm_${one}
                -c ${probe}.cu -o ${probe}.o
        RESULT_VARIABLE failed OUTPUT_QUIET ERROR_FILE ${probe}.log)
      if(NOT failed)
        set(TROUPE_CUDA_PROBED ${TROUPE_NVCC} CACHE INTERNAL "nvcc that compiles")
      endif()
    endif()
    if(NOT architectures)
      troupe_no_cuda("${TROUPE_NVCC} (${nvcc_version}) knows no architecture from 75 to 90")
    elseif(NOT TROUPE_CUDART)
      troupe_no_cuda("${TROUPE_NVCC} has no libcudart_static.a beside it")
    elseif(NOT TROUPE_CUDA_PROBED STREQUAL TROUPE_NVCC)
      troupe_no_cuda("${TROUPE_NVCC} (${nvcc_version}) compiles nothing with ${CMAKE_CXX_COMPILER}, see ${probe}.log")
    endif()
  endif()
endif()

if(TROUPE_CUDA_COMPILER)
  list(JOIN architectures " " said)
  message(STATUS "CUDA: ${nvcc_version}, ${TROUPE_NVCC}, for architectures ${said}")
  troupe_say_where(cuBLAS libcublas.so)
  troupe_say_where(NCCL libnccl.so.2)
  set(TROUPE_CUDA_CODE "")
  foreach(one IN LISTS architectures)
    list(APPEND TROUPE_CUDA_CODE -gencode=arch=compute_${one},code=sm_${one})
  endforeach()
  set(TROUPE_CUDA_ARCHITECTURE_LIST ${architectures})
  list(GET architectures -1 newest)
  list(APPEND TROUPE_CUDA_CODE -gencode=arch=compute_${newest},code=compute_${newest})
endif()

# Adds CUDA sources to a target. `options` are flags of the C++ compiler. A source's first line may
# name flags of nvcc: "// nvcc: -ftz=true".
function(troupe_add_cuda_sources target options)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(host UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(everywhere COMPILE_OPTIONS)
  list(FILTER everywhere EXCLUDE REGEX "^-W") # Code that nvcc generates has warnings.
  list(APPEND host ${everywhere} ${options} -fPIC)
  get_directory_property(defined COMPILE_DEFINITIONS)
  list(TRANSFORM defined PREPEND -D)
  list(TRANSFORM host REPLACE "," "\\\\,") # In nvcc a comma ends an option.
  list(TRANSFORM host PREPEND -Xcompiler=)
  foreach(source IN LISTS ARGN)
    if(NOT TROUPE_CUDA_COMPILER)
      target_sources(${target} PRIVATE ${source})
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++")
      continue()
    endif()
    file(STRINGS ${source} flags LIMIT_COUNT 1 REGEX "^// nvcc: ")
    string(REPLACE "// nvcc: " "" flags "${flags}")
    separate_arguments(flags)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
    cmake_path(GET object PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${TROUPE_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++20
              -O3 --expt-relaxed-constexpr -fmad=false ${flags} ${TROUPE_CUDA_CODE}
              -I${PROJECT_SOURCE_DIR} ${defined} ${host} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling CUDA source ${name}" VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  troupe_use_cuda(${target})
endfunction()

# If there is CUDA, lets a target's C++ sources call its runtime and defines TROUPE_CUDA_FOUND.
function(troupe_use_cuda target)
  if(TROUPE_CUDA_COMPILER)
    target_compile_definitions(${target} PRIVATE TROUPE_CUDA_FOUND)
    target_include_directories(${target} SYSTEM PRIVATE ${TROUPE_CUDA_ROOT}/include)
    target_link_libraries(${target} PUBLIC ${TROUPE_CUDART} rt dl Threads::Threads)
  endif()
endfunction()
