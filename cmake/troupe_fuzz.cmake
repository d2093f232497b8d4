# tests/<component>/x_fuzz.cpp: one libFuzzer program for each decoder. They and the serialization
# sources are compiled by clang++ with sanitizers, beside the compiler of the rest of the build.

file(GLOB fuzzers CONFIGURE_DEPENDS tests/*/*_fuzz.cpp)
if(NOT fuzzers)
  return()
endif()
