# Finds libtorch for examples/09_libtorch.
#
# Sets TROUPE_NO_LIBTORCH to the reason if the example cannot be built; else it is empty.

function(troupe_find_libtorch)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING) # Its packages print lines of their own, QUIET or not.
  find_package(Torch QUIET)
  set(TROUPE_NO_LIBTORCH "" PARENT_SCOPE)
  if(NOT Torch_FOUND)
    set(TROUPE_NO_LIBTORCH "no libtorch found (package libtorch-dev)" PARENT_SCOPE)
  elseif(TROUPE_SANITIZE)
    set(TROUPE_NO_LIBTORCH "libtorch is compiled without sanitizers" PARENT_SCOPE)
  endif()
endfunction()

troupe_find_libtorch()
if(TROUPE_NO_LIBTORCH)
  message(STATUS "libtorch: ${TROUPE_NO_LIBTORCH}: examples/09_libtorch is left out")
else()
  message(STATUS "libtorch: ${Torch_DIR}, for examples/09_libtorch")
endif()
