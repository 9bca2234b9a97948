# Finds FAISS, or builds it as part of this project.
#
# Tried in this order:
#   1. FETCHCONTENT_SOURCE_DIR_FAISS  a source tree of the user's
#   2. FAISS_BITS_FAISS_TAG           a tag of FAISS's public repository
#   3. the wheel in this Python       under pip (PythonFaiss.cmake)
#   4. find_package(faiss)            Debian, conda, tools/setup.sh, own builds
#
# in   FAISS_BITS_CUDA_COMPILER; the variables above
# out  target faiss
#      FAISS_BITS_FAISS_VERSION   e.g. 1.7.3: as faiss.__version__ says it
#      FAISS_BITS_FAISS_HAS_GPU   TRUE where FAISS's GPU part is there

function(faiss_bits_faiss_include_dirs out)
  get_target_property(dirs faiss INTERFACE_INCLUDE_DIRECTORIES)
  # A source tree wraps its folder in a generator expression.
  string(REGEX REPLACE "\\$<BUILD_INTERFACE:([^>]*)>" "\\1" dirs "${dirs}")
  string(GENEX_STRIP "${dirs}" dirs)
  set(${out} "${dirs}" PARENT_SCOPE)
endfunction()

function(faiss_bits_read_faiss_version out)
  faiss_bits_faiss_include_dirs(dirs)
  find_file(header faiss/Index.h
    PATHS ${dirs} NO_DEFAULT_PATH NO_CACHE REQUIRED)
  file(STRINGS "${header}" lines REGEX "define FAISS_VERSION_")
  set(version "")
  foreach(part MAJOR MINOR PATCH)
    if(NOT lines MATCHES "FAISS_VERSION_${part} ([0-9]+)")
      message(FATAL_ERROR "No FAISS_VERSION_${part} in ${header}")
    endif()
    list(APPEND version ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN version "." version)
  set(${out} ${version} PARENT_SCOPE)
endfunction()

# Builds libfaiss from source with just what we need, in a scope of its own.
function(faiss_bits_build_faiss)
  include(FetchContent)
  set(BUILD_SHARED_LIBS ON)
  set(BUILD_TESTING OFF)
  set(FAISS_ENABLE_GPU ${FAISS_BITS_CUDA_COMPILER})
  set(FAISS_ENABLE_PYTHON ${FAISS_BITS_PYTHON})
  set(FAISS_ENABLE_EXTRAS OFF)
  set(FAISS_ENABLE_MKL OFF)
  set(FAISS_ENABLE_C_API OFF)
  FetchContent_Declare(faiss
    GIT_REPOSITORY https://github.com/facebookresearch/faiss.git
    GIT_TAG "${FAISS_BITS_FAISS_TAG}"
    GIT_SHALLOW ON
    GIT_PROGRESS ON)
  FetchContent_MakeAvailable(faiss)

  # Older releases build these whether wanted or not.
  foreach(folder demos benchs tutorial/cpp)
    get_property(known DIRECTORY "${faiss_SOURCE_DIR}" PROPERTY SUBDIRECTORIES)
    if("${faiss_SOURCE_DIR}/${folder}" IN_LIST known)
      set_property(DIRECTORY "${faiss_SOURCE_DIR}/${folder}"
        PROPERTY EXCLUDE_FROM_ALL ON)
    endif()
  endforeach()
  # 1.7.3 asks for C++11, which the CUDA 13 headers no longer take.
  get_target_property(standard faiss CXX_STANDARD)
  if(standard LESS 17)
    set_target_properties(faiss PROPERTIES CXX_STANDARD 17 CUDA_STANDARD 17)
  endif()
  # Its module, as a package beside ours.
  if(TARGET swigfaiss)
    file(MAKE_DIRECTORY "${FAISS_BITS_PYTHON_DIR}")
    file(CREATE_LINK "${faiss_BINARY_DIR}/faiss/python"
      "${FAISS_BITS_PYTHON_DIR}/faiss" SYMBOLIC)
  endif()
  # Its headers are not ours to hold to our warnings.
  get_target_property(dirs faiss INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(faiss SYSTEM INTERFACE ${dirs})
endfunction()

# FAISS's config file names what is found here without finding it. CUDA comes
# first, as the toolkit is the one of the compiler only once that is enabled.
if(FAISS_BITS_CUDA_COMPILER)
  faiss_bits_enable_cuda()
endif()
include(PythonFaiss)
if(FAISS_BITS_PYTHON_FAISS_OPENMP AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The wheel's own, in place of this system's.
  set(OpenMP_gomp_LIBRARY "${FAISS_BITS_PYTHON_FAISS_OPENMP}" CACHE FILEPATH
    "OpenMP runtime to link")
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)

set(FAISS_BITS_FAISS_HAS_GPU FALSE)
if(TARGET faiss)
  set(faiss_bits_faiss_origin "the enclosing project")
elseif(FAISS_BITS_PYTHON_FAISS_LIBRARY)
  faiss_bits_use_wheel()
  set(FAISS_BITS_FAISS_HAS_GPU ${FAISS_BITS_PYTHON_FAISS_HAS_GPU})
  set(faiss_bits_faiss_origin "wheel ${FAISS_BITS_PYTHON_FAISS_DISTRIBUTION}, \
${FAISS_BITS_PYTHON_FAISS_FOLDER}")
elseif(FETCHCONTENT_SOURCE_DIR_FAISS OR FAISS_BITS_FAISS_TAG)
  set(FAISS_BITS_FAISS_HAS_GPU ${FAISS_BITS_CUDA_COMPILER})
  faiss_bits_build_faiss()
  if(FETCHCONTENT_SOURCE_DIR_FAISS)
    set(faiss_bits_faiss_origin "source tree ${FETCHCONTENT_SOURCE_DIR_FAISS}")
  else()
    set(faiss_bits_faiss_origin "tag ${FAISS_BITS_FAISS_TAG}")
  endif()
else()
  find_package(faiss QUIET)
  if(NOT faiss_FOUND)
    set(faiss_bits_why "")
    if(FAISS_BITS_PYTHON_FAISS_DISTRIBUTION)
      set(faiss_bits_why " (${FAISS_BITS_PYTHON_FAISS_DISTRIBUTION} \
${FAISS_BITS_PYTHON_FAISS_VERSION} in this Python has no libfaiss.so to link; \
newer wheels have)")
    endif()
    message(FATAL_ERROR
      "No FAISS found${faiss_bits_why}. Give one of: -Dfaiss_DIR=<folder of faiss-config.cmake>, "
      "-DFETCHCONTENT_SOURCE_DIR_FAISS=<source tree>, "
      "-DFAISS_BITS_FAISS_TAG=<tag, such as v1.15.0>; or let tools/setup.sh "
      "install one (CONTRIBUTING.md).")
  endif()
  set(faiss_bits_faiss_origin "${faiss_DIR}")
endif()

if(NOT FAISS_BITS_FAISS_HAS_GPU AND NOT FAISS_BITS_PYTHON_FAISS_LIBRARY)
  # An installed FAISS has its GPU headers only if it was built with them.
  faiss_bits_faiss_include_dirs(faiss_bits_dirs)
  find_file(faiss_bits_gpu_header faiss/gpu/GpuIndexFlat.h
    PATHS ${faiss_bits_dirs} NO_DEFAULT_PATH NO_CACHE)
  if(faiss_bits_gpu_header)
    set(FAISS_BITS_FAISS_HAS_GPU TRUE)
  endif()
endif()

if(FAISS_BITS_PYTHON_FAISS_LIBRARY)
  set(FAISS_BITS_FAISS_VERSION ${FAISS_BITS_PYTHON_FAISS_RELEASE})
else()
  faiss_bits_read_faiss_version(FAISS_BITS_FAISS_VERSION)
  if(FAISS_BITS_PYTHON_FAISS_RELEASE AND NOT
      FAISS_BITS_PYTHON_FAISS_RELEASE VERSION_EQUAL FAISS_BITS_FAISS_VERSION)
    message(FATAL_ERROR "This Python imports "
      "${FAISS_BITS_PYTHON_FAISS_DISTRIBUTION} "
      "${FAISS_BITS_PYTHON_FAISS_VERSION} "
      "(${FAISS_BITS_PYTHON_FAISS_FOLDER}), which has no libfaiss.so to link, "
      "and CMake found FAISS ${FAISS_BITS_FAISS_VERSION} "
      "(${faiss_bits_faiss_origin}). Name a FAISS of the same version, or set "
      "FAISS_BITS_FAISS_PACKAGE=off to build for the one found.")
  endif()
endif()
message(STATUS "FAISS_BITS_FAISS_VERSION ${FAISS_BITS_FAISS_VERSION} "
  "(${faiss_bits_faiss_origin}; GPU part: ${FAISS_BITS_FAISS_HAS_GPU})")
