# The .cu files, compiled twice: by the host compiler against kernels/emulation, so that every kernel runs on any
# machine (docs/decisions/cuda.md), and by nvcc where there is one, so that they stay CUDA.
file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/*.cu kernels/*/*.cu)

# quantmap_emulated(NAME [FAULT]): library quantmap_NAME, all kernels in namespace quantmap::NAME.
function(quantmap_emulated NAME)
  add_library(quantmap_${NAME} STATIC ${cuda_sources})
  set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  target_compile_definitions(quantmap_${NAME} PRIVATE QUANTMAP_DEVICE=${NAME})
  if(ARGC GREATER 1)
    target_compile_definitions(quantmap_${NAME} PRIVATE QUANTMAP_FAULT=${ARGV1})
    target_compile_options(quantmap_${NAME} PRIVATE -O1)
  endif()
  target_link_libraries(quantmap_${NAME} PUBLIC quantmap_emulation)
endfunction()

file(GLOB emulation_sources CONFIGURE_DEPENDS kernels/emulation/*.cpp)
add_library(quantmap_emulation STATIC ${emulation_sources})
target_link_libraries(quantmap_emulation PUBLIC quantmap_flags quantmap_kernels Boost::context)
quantmap_emulated(emulated)
if(QUANTMAP_TESTS)
  foreach(fault off_by_one missing_barrier wrong_lane)
    quantmap_emulated(${fault} ${fault})
  endforeach()
endif()

# nvcc: one object a file and architecture; what ptxas says of registers and spills lies beside it as NAME.ptxas.
# -fmad=false: results are the CPU's to the bit where the header says so. 1675: pragmas that are GCC's own.
find_program(NVCC nvcc HINTS /usr/local/cuda/bin)
set(QUANTMAP_NVCC_FLAGS -std=c++20 -fmad=false --expt-relaxed-constexpr -diag-suppress 1675 -Werror all-warnings
  -Xcompiler -Wall,-Wextra,-Werror -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR} -Xptxas -v)
# quantmap_nvcc(TARGET ARCH): a target that compiles all .cu files for one architecture.
function(quantmap_nvcc TARGET ARCH)
  set(objects)
  foreach(source ${cuda_sources})
    get_filename_component(name ${source} NAME_WE)
    set(object ${PROJECT_BINARY_DIR}/cuda/${ARCH}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/cuda/${ARCH}
      COMMAND sh -c "\"$0\" \"$@\" 2>${name}.ptxas || { cat ${name}.ptxas >&2; exit 1; }"
        ${NVCC} ${QUANTMAP_NVCC_FLAGS} -arch=${ARCH} -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/cuda/${ARCH}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "nvcc ${ARCH} ${name}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(${TARGET} ${ARGN} DEPENDS ${objects})
endfunction()
if(NVCC)
  quantmap_nvcc(cuda_objects sm_90 ALL)
  foreach(arch sm_80 sm_100 sm_120)
    quantmap_nvcc(cuda_objects_${arch} ${arch})
  endforeach()
  if(QUANTMAP_TESTS)
    foreach(arch sm_80 sm_100 sm_120)
      add_test(NAME Nvcc.compiles_for_${arch}
        COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target cuda_objects_${arch})
      set_tests_properties(Nvcc.compiles_for_${arch} PROPERTIES LABELS slow RUN_SERIAL TRUE TIMEOUT 900)
    endforeach()
  endif()
endif()
