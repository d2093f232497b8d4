# Lets find_package(Troupe) define Troupe::serialization, ::kernels, ::storage and ::actors. Linking
# Troupe::actors links them all.

include(${CMAKE_CURRENT_LIST_DIR}/TroupeDependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/TroupeTargets.cmake)
