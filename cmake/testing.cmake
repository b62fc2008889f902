# Tests that are no GoogleTest program, and the data they need from outside. What cannot run here is left out of CTest
# and listed in <build>/tests_left_out.txt, which ./build.sh test prints: nothing is skipped silently.
set(DI_TEST_DATA "$ENV{DEEPINFER_TEST_DATA}" CACHE PATH "directory of the public test suites; empty for none")
set(DI_TEST_PYTHON "" CACHE FILEPATH "a python with tests/requirements.txt installed (./build.sh test makes one)")
set_property(GLOBAL PROPERTY DI_TESTS_LEFT_OUT "")

# di_leave_out(<what> <why>): one line of the list.
function(di_leave_out what why)
  set_property(GLOBAL APPEND PROPERTY DI_TESTS_LEFT_OUT "${what}: ${why}")
endfunction()

# di_find_test_data(<variable> <path below DI_TEST_DATA> <test name>): the absolute path, or empty and a line in the
# list. if(<variable>) the caller registers <test name>.
function(di_find_test_data variable path test)
  set(${variable} "" PARENT_SCOPE)
  if(NOT DI_TEST_DATA)
    di_leave_out(${test} "needs ${path} of the public suites; DEEPINFER_TEST_DATA is not set")
  elseif(NOT EXISTS "${DI_TEST_DATA}/${path}")
    di_leave_out(${test} "${DI_TEST_DATA}/${path} does not exist")
  else()
    set(${variable} "${DI_TEST_DATA}/${path}" PARENT_SCOPE)
  endif()
endfunction()

# di_add_python_tests(<tier>/<name> FILES ... [ENVIRONMENT ...]): one CTest test that runs pytest on FILES (relative to
# tests/). They find the program in DEEPINFER_BIN when it is built, public suites in DEEPINFER_TEST_DATA.
function(di_add_python_tests path)
  cmake_parse_arguments(ARG "" "" "FILES;ENVIRONMENT" ${ARGN})
  if(NOT DI_TEST_PYTHON)
    di_leave_out(${path} "DI_TEST_PYTHON is not set")
    return()
  endif()
  string(REGEX REPLACE "/.*" "" tier "${path}")
  set(environment "PYTHONDONTWRITEBYTECODE=1" ${ARG_ENVIRONMENT})
  if(DI_TEST_DATA)
    list(APPEND environment "DEEPINFER_TEST_DATA=${DI_TEST_DATA}")
  endif()
  if(TARGET deepinfer)
    list(APPEND environment "DEEPINFER_BIN=$<TARGET_FILE:deepinfer>")
  endif()
  add_test(NAME ${path} COMMAND "${DI_TEST_PYTHON}" -m pytest -q -p no:cacheprovider ${ARG_FILES}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/tests)
  set_tests_properties(${path} PROPERTIES LABELS ${tier} ENVIRONMENT "${environment}")
endfunction()

# Called last: writes the list.
function(di_write_left_out)
  get_property(lines GLOBAL PROPERTY DI_TESTS_LEFT_OUT)
  list(JOIN lines "\n" text)
  file(WRITE ${PROJECT_BINARY_DIR}/tests_left_out.txt "${text}")
endfunction()
