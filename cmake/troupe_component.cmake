# Orders the sources of a unity build so that those with the same large header share a batch.
function(troupe_order_sources variable)
  set(ordered "")
  set(rest ${${variable}})
  foreach(header IN ITEMS nlohmann/json\\.hpp CLI/CLI rocksdb/)
    foreach(source IN LISTS rest)
      file(STRINGS ${source} found LIMIT_COUNT 1 REGEX "^#include [<\"]${header}")
      if(found)
        list(APPEND ordered ${source})
      endif()
    endforeach()
    list(REMOVE_ITEM rest "" ${ordered})
  endforeach()
  set(${variable} ${ordered} ${rest} PARENT_SCOPE)
endfunction()

# Adds library troupe_<name> (Troupe::<name>) from all .cpp files below <name>/ and <name>/*.cu. A
# folder without sources gives a library of headers alone.
#
# troupe_add_component(<name> DEPENDS <target>... SCHEMAS <file.capnp>... OPTIONS <flag>...
#                      PRECOMPILE <header>...)
#
# SCHEMAS are compiled by capnp; #include "<name>/<file>.capnp.h" finds them.
function(troupe_add_component name)
  cmake_parse_arguments(arg "" "" "DEPENDS;SCHEMAS;OPTIONS;PRECOMPILE" ${ARGN})
  set(target troupe_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${name}/*.cpp)
  troupe_order_sources(sources)
  set(generated_root ${PROJECT_BINARY_DIR}/generated)
  if(arg_SCHEMAS)
    set(generated ${arg_SCHEMAS})
    list(TRANSFORM generated REPLACE ${PROJECT_SOURCE_DIR} ${generated_root})
    set(generated_sources ${generated})
    list(TRANSFORM generated_sources APPEND .c++)
    set(generated_headers ${generated})
    list(TRANSFORM generated_headers APPEND .h)
    find_program(TROUPE_CAPNP capnp REQUIRED)
    mark_as_advanced(TROUPE_CAPNP)
    file(MAKE_DIRECTORY ${generated_root})
    add_custom_command(
      OUTPUT ${generated_sources} ${generated_headers}
      COMMAND ${TROUPE_CAPNP} compile -oc++:${generated_root}
              --src-prefix=${PROJECT_SOURCE_DIR} ${arg_SCHEMAS}
      DEPENDS ${arg_SCHEMAS} COMMENT "Compiling schemas of ${name}/" VERBATIM)
    add_custom_target(${target}_schemas DEPENDS ${generated_sources} ${generated_headers})
    set_source_files_properties(${generated_sources} PROPERTIES COMPILE_OPTIONS -w)
    list(APPEND sources ${generated_sources} ${generated_headers})
  endif()

  set(visibility PUBLIC)
  if(NOT sources)
    set(visibility INTERFACE)
    add_library(${target} INTERFACE)
  else()
    add_library(${target} STATIC ${sources})
    # Shared libraries, such as modules of Python, link Troupe, too. Without the option, a library
    # could replace each function of Troupe by its own, and so the compiler would inline none.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition ${arg_OPTIONS})
    file(GLOB cuda_sources CONFIGURE_DEPENDS ${name}/*.cu)
    if(cuda_sources)
      troupe_add_cuda_sources(${target} "${arg_OPTIONS}" ${cuda_sources})
    endif()
  endif()
  add_library(Troupe::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${visibility} cxx_std_20)
  target_link_libraries(${target} ${visibility} ${arg_DEPENDS})
  target_include_directories(${target} ${visibility}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/troupe>)
  if(arg_SCHEMAS)
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${generated_root}>)
  endif()
  if(TROUPE_SANITIZE AND Troupe::caf_core IN_LIST arg_DEPENDS)
    # caf/init_fun_factory.hpp dereferences a null reference that it never uses.
    target_compile_options(${target} ${visibility} $<BUILD_INTERFACE:-fno-sanitize=null>)
  endif()
  if(arg_PRECOMPILE AND sources)
    target_precompile_headers(${target} PRIVATE ${arg_PRECOMPILE})
  endif()
endfunction()
