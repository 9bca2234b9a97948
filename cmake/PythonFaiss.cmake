# The `faiss` package of the Python that we build for, where that matters: under
# pip, or with FAISS_BITS_FAISS_PACKAGE. Other builds leave it alone.
#
# The official wheels (faiss-cpu, faiss-gpu) hold their libfaiss.so and no
# headers. We link that very library, so that there is one FAISS in a program,
# and take the headers from a source tree of the same release.
#
# in   FAISS_BITS_FAISS_PACKAGE  folder of a `faiss` package, or off. Under pip
#                                the default is the one that `import faiss` finds
#      FAISS_BITS_FAISS_HEADERS  FAISS's source tree of the wheel's release;
#                                default: its tag of the public repository
#      Both may be variables of the environment; under pip the first must be,
#      as metadata.py reads it too.
# out  FAISS_BITS_PYTHON_FAISS_{FOLDER,DISTRIBUTION,VERSION,LIBRARY,OPENMP,
#      SWIG_RUNTIME,HAS_GPU,CUDA} as tools/pip/python_faiss.py says; all empty
#                                where there is none
#      FAISS_BITS_PYTHON_FAISS_RELEASE  1.15.1 of the version 1.15.1.post2
#      faiss_bits_use_wheel()    makes target faiss from them

# Not a PATH: CMake would make -DFAISS_BITS_FAISS_PACKAGE=off a folder.
set(FAISS_BITS_FAISS_PACKAGE "$ENV{FAISS_BITS_FAISS_PACKAGE}" CACHE STRING
  "cmake/PythonFaiss.cmake says what it is")
set(FAISS_BITS_FAISS_HEADERS "$ENV{FAISS_BITS_FAISS_HEADERS}" CACHE PATH
  "cmake/PythonFaiss.cmake says what it is")
if(SKBUILD AND
    NOT FAISS_BITS_FAISS_PACKAGE STREQUAL "$ENV{FAISS_BITS_FAISS_PACKAGE}")
  message(FATAL_ERROR "FAISS_BITS_FAISS_PACKAGE is "
    "'${FAISS_BITS_FAISS_PACKAGE}' for CMake and "
    "'$ENV{FAISS_BITS_FAISS_PACKAGE}' in the environment, where pip reads it: "
    "set it there.")
endif()

set(faiss_bits_package_fields
  FOLDER DISTRIBUTION VERSION LIBRARY OPENMP SWIG_RUNTIME HAS_GPU CUDA)
foreach(field IN LISTS faiss_bits_package_fields)
  set(FAISS_BITS_PYTHON_FAISS_${field} "")
endforeach()

if(SKBUILD OR FAISS_BITS_FAISS_PACKAGE)
  find_package(Python 3.8 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env
      "FAISS_BITS_FAISS_PACKAGE=${FAISS_BITS_FAISS_PACKAGE}"
      "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/pip/python_faiss.py"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"  # as pip runs metadata.py
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The FAISS of ${Python_EXECUTABLE}: ${error}")
  endif()
  foreach(field IN LISTS faiss_bits_package_fields)
    string(TOLOWER ${field} name)
    if(output MATCHES "(^|\n)${name}=([^\n]*)")
      set(FAISS_BITS_PYTHON_FAISS_${field} "${CMAKE_MATCH_2}")
    endif()
  endforeach()
endif()
string(REGEX MATCH "^[0-9]+[.][0-9]+[.][0-9]+" FAISS_BITS_PYTHON_FAISS_RELEASE
  "${FAISS_BITS_PYTHON_FAISS_VERSION}")

# uv and `python -m build` build with a Python that sees no package. Any other
# FAISS of this machine would be built for, and never be the one imported.
if(SKBUILD AND NOT FAISS_BITS_PYTHON_FAISS_FOLDER AND NOT
    (FAISS_BITS_FAISS_PACKAGE OR faiss_DIR OR DEFINED ENV{CMAKE_PREFIX_PATH} OR
      FETCHCONTENT_SOURCE_DIR_FAISS OR FAISS_BITS_FAISS_TAG))
  message(FATAL_ERROR "${Python_EXECUTABLE} has no module faiss. Install FAISS "
    "into this Python first. If it is there and this build does not see it "
    "(uv, python -m build, PYTHONPATH), set FAISS_BITS_FAISS_PACKAGE in the "
    "environment to the folder of the package. FAISS_BITS_FAISS_PACKAGE=off "
    "builds for the FAISS that CMake finds.")
endif()

function(faiss_bits_wheel_headers out)
  set(headers "${FAISS_BITS_FAISS_HEADERS}")
  if(NOT headers)
    set(tag "v${FAISS_BITS_PYTHON_FAISS_RELEASE}")
    message(STATUS "FAISS_BITS_FAISS_HEADERS is not set: fetching FAISS ${tag}")
    include(FetchContent)
    FetchContent_Declare(faiss_headers
      GIT_REPOSITORY https://github.com/facebookresearch/faiss.git
      GIT_TAG "${tag}"
      GIT_SHALLOW ON
      GIT_PROGRESS ON
      SOURCE_SUBDIR no-project)  # fetched, not built
    FetchContent_MakeAvailable(faiss_headers)
    set(headers "${faiss_headers_SOURCE_DIR}")
  endif()
  get_filename_component(headers "${headers}" ABSOLUTE
    BASE_DIR "${PROJECT_SOURCE_DIR}")
  if(NOT EXISTS "${headers}/faiss/Index.h")
    message(FATAL_ERROR "FAISS_BITS_FAISS_HEADERS = '${headers}' is no source "
      "tree of FAISS (it has no faiss/Index.h).")
  endif()
  set(${out} "${headers}" PARENT_SCOPE)
endfunction()

function(faiss_bits_use_wheel)
  set(package "${FAISS_BITS_PYTHON_FAISS_DISTRIBUTION}")
  set(wheel "${package} ${FAISS_BITS_PYTHON_FAISS_VERSION}")
  if(faiss_DIR OR FETCHCONTENT_SOURCE_DIR_FAISS OR FAISS_BITS_FAISS_TAG)
    message(FATAL_ERROR "This Python has the wheel ${wheel} "
      "(${FAISS_BITS_PYTHON_FAISS_FOLDER}), and another FAISS was named too. "
      "Set FAISS_BITS_FAISS_PACKAGE=off to build for the other one.")
  endif()
  faiss_bits_wheel_headers(headers)
  add_library(faiss SHARED IMPORTED GLOBAL)
  set_target_properties(faiss PROPERTIES
    IMPORTED_LOCATION "${FAISS_BITS_PYTHON_FAISS_LIBRARY}"
    IMPORTED_SONAME libfaiss.so
    INTERFACE_INCLUDE_DIRECTORIES "${headers}")
  # What the wheel's libraries need of each other and of CUDA lies where they
  # alone, or Python's import, say to look; a program's linker would ask for it.
  target_link_options(faiss INTERFACE LINKER:--allow-shlib-undefined)

  faiss_bits_read_faiss_version(version)
  # Not of the same series alone: classes of 1.15.0 and 1.15.1 differ in size.
  if(NOT version VERSION_EQUAL FAISS_BITS_PYTHON_FAISS_RELEASE)
    message(FATAL_ERROR "The headers of ${headers} are FAISS ${version}, the "
      "wheel is ${wheel}: FAISS_BITS_FAISS_HEADERS must name a source tree of "
      "the same release, the tag v${FAISS_BITS_PYTHON_FAISS_RELEASE}.")
  endif()
endfunction()
