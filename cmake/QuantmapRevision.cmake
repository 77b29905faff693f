# The git revision that results are stamped with; `-dirty` where the tree had changes when CMake last ran. CMake
# runs again whenever HEAD moves.
set(QUANTMAP_GIT_REVISION "unknown")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude *
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE revision RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(QUANTMAP_GIT_REVISION ${revision})
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
  endif()
endif()
configure_file(src/app/version.hpp.in ${PROJECT_BINARY_DIR}/generated/app/version.hpp @ONLY)
