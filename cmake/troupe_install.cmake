# Installs the libraries, the programs `troupe` and `troupe_sim` if they are built, headers below
# include/troupe, and the files that find_package(Troupe) needs.

include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Troupe)
install(TARGETS troupe_base troupe_serialization troupe_kernels troupe_storage troupe_actors
        troupe_deterministic EXPORT TroupeTargets)
if(TROUPE_ENABLE_PROGRAMS)
  install(TARGETS troupe)
  install(TARGETS troupe_sim RUNTIME OPTIONAL) # scripts/demo does not build it.
endif()
foreach(component IN ITEMS troupe base serialization kernels storage actors)
  install(DIRECTORY ${component} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(EXPORT TroupeTargets NAMESPACE Troupe:: DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/TroupeConfig.cmake cmake/TroupeDependencies.cmake
              ${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake
        DESTINATION ${package})
