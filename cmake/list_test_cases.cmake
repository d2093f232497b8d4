# Writes one add_test() for each test case of a doctest program. Run after it was linked.
#
# cmake -D program=<path> -D prefix=<text> -D list=<file to write> -P list_test_cases.cmake

cmake_minimum_required(VERSION 3.25)

function(list_cases result)
  execute_process(COMMAND ${program} --list-test-cases --no-version ${ARGN}
                  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "\\;" output "${output}")
  string(REPLACE "\n" ";" output "${output}")
  list(FILTER output EXCLUDE REGEX "^(\\[doctest\\].*|=*)$")
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

list_cases(cases)
list_cases(slow_cases --test-suite=slow)
set(text "")
foreach(case IN LISTS cases)
  string(REPLACE "," "\\," filter "${case}")
  set(name "[==[${prefix}.${case}]==]")
  string(APPEND text
    "add_test(${name} [==[${program}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties(${name} PROPERTIES TIMEOUT 60 SKIP_REGULAR_EXPRESSION SKIPPED:)\n")
  if(case IN_LIST slow_cases)
    string(APPEND text "set_tests_properties(${name} PROPERTIES LABELS slow)\n")
  endif()
endforeach()
file(WRITE ${list} "${text}")
