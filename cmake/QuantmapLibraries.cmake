# Every library that quantmap takes from outside (Debian 12 packages; scripts/setup installs them).
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)      # SHA-256
find_package(fmt REQUIRED)                            # text formatting
find_package(nlohmann_json 3.9 REQUIRED)              # JSON
find_package(Boost 1.74 REQUIRED COMPONENTS program_options context)  # context: fibers of the emulation
find_package(SQLiteCpp REQUIRED)                      # results
find_package(ICU REQUIRED COMPONENTS uc)              # Unicode normalization
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)  # tokenizer patterns
add_library(PCRE2::8 ALIAS PkgConfig::PCRE2)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
add_library(quantmap::sentencepiece ALIAS PkgConfig::SENTENCEPIECE)

# oneDNN: matrix products. Debian's build uses OpenMP inside; quantmap calls it single-threaded from its own
# threads (docs/decisions), so OpenMP is linked only to say so.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(quantmap_dnnl INTERFACE)
target_include_directories(quantmap_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(quantmap_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)
add_library(quantmap::dnnl ALIAS quantmap_dnnl)

# HDF5: captures, by its C library. Chunks are compressed by our own threads (zlib) and written as they are.
find_package(ZLIB REQUIRED)
set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 1.10.3 REQUIRED COMPONENTS C)
add_library(quantmap_hdf5 INTERFACE)
target_include_directories(quantmap_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
list(FILTER HDF5_C_LIBRARIES INCLUDE REGEX "hdf5")  # what it uses itself is linked to it
target_link_libraries(quantmap_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
add_library(quantmap::hdf5 ALIAS quantmap_hdf5)

# d3: the plots of `quantmap report`, inlined into the page.
find_file(D3_SCRIPT d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 NO_DEFAULT_PATH)
if(NOT D3_SCRIPT)
  message(FATAL_ERROR "d3.min.js not found (Debian: node-d3; scripts/setup installs it). Elsewhere: -DD3_SCRIPT=FILE")
endif()
