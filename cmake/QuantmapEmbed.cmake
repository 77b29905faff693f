# quantmap_embed(STAGE NAME files...): the text of files, compiled into a stage. `#include "embedded/NAME.hpp"` there
# gives quantmap::embedded::NAME, an array of {file name without extension, text} in the order given. A changed file
# is embedded again by the next build.
function(quantmap_embed STAGE NAME)
  set(entries "")
  foreach(file ${ARGN})
    get_filename_component(path ${file} ABSOLUTE)
    cmake_path(GET path STEM stem)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} text)
    string(APPEND entries "    {\"${stem}\", R\"quantmap(${text})quantmap\"},\n")
  endforeach()
  list(LENGTH ARGN count)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded.hpp.in ${PROJECT_BINARY_DIR}/generated/embedded/${NAME}.hpp @ONLY)
  target_include_directories(quantmap_${STAGE} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
