# find_package(Troupe) gives Troupe::serialization, ::kernels, ::storage and ::actors; link the last
# one to have them all.

include(${CMAKE_CURRENT_LIST_DIR}/TroupeDependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/TroupeTargets.cmake)
