# Finds Highway (SIMD for several instruction sets), or builds it here.
#
#   1. a package that is installed: Debian's libhwy-dev, conda's libhwy, own ones
#   2. FETCHCONTENT_SOURCE_DIR_HIGHWAY, a source tree; or the tag
#      FAISS_BITS_HIGHWAY_TAG of its public repository, under pip 1.2.0
#
# out  target hwy::hwy

set(faiss_bits_highway_default "")
if(SKBUILD)  # a user's machine, where nobody has installed it for us
  set(faiss_bits_highway_default 1.2.0)
endif()
set(FAISS_BITS_HIGHWAY_TAG "${faiss_bits_highway_default}" CACHE STRING
  "Build Highway from this tag where none is installed (empty: an error)")

# Its static library alone, with its own settings, in a scope of its own.
function(faiss_bits_build_highway)
  include(FetchContent)
  set(BUILD_SHARED_LIBS OFF)
  set(BUILD_TESTING OFF)
  set(HWY_ENABLE_CONTRIB OFF)
  set(HWY_ENABLE_EXAMPLES OFF)
  set(HWY_ENABLE_INSTALL OFF)
  set(HWY_ENABLE_TESTS OFF)
  # Older releases set it to the default that we have set for our own code.
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  message(STATUS "Highway is not installed: building ${FAISS_BITS_HIGHWAY_TAG}")
  FetchContent_Declare(highway
    GIT_REPOSITORY https://github.com/google/highway.git
    GIT_TAG "${FAISS_BITS_HIGHWAY_TAG}"
    GIT_SHALLOW ON
    GIT_PROGRESS ON)
  FetchContent_MakeAvailable(highway)
  set_property(DIRECTORY "${highway_SOURCE_DIR}" PROPERTY EXCLUDE_FROM_ALL ON)
  get_target_property(dirs hwy INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(hwy SYSTEM INTERFACE ${dirs})
  add_library(hwy::hwy ALIAS hwy)
endfunction()

find_package(HWY QUIET)
if(NOT TARGET hwy::hwy)
  # Debian's package names it hwy; other builds have a pkg-config file alone.
  find_package(hwy QUIET)
endif()
if(NOT TARGET hwy::hwy)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(faiss_bits_hwy QUIET IMPORTED_TARGET libhwy)
  endif()
  if(TARGET PkgConfig::faiss_bits_hwy)
    add_library(hwy::hwy ALIAS PkgConfig::faiss_bits_hwy)
  elseif(FETCHCONTENT_SOURCE_DIR_HIGHWAY OR FAISS_BITS_HIGHWAY_TAG)
    faiss_bits_build_highway()
  else()
    message(FATAL_ERROR
      "No Highway found (Debian's libhwy-dev, 1.0.3 or newer). Give "
      "-Dhwy_DIR=<folder of hwy-config.cmake> or "
      "-DFAISS_BITS_HIGHWAY_TAG=1.2.0, or let tools/setup.sh install it "
      "(CONTRIBUTING.md).")
  endif()
endif()
