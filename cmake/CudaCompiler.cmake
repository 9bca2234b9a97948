# Looks for a CUDA compiler, without yet enabling the language.
#
# in   FAISS_BITS_GPU (AUTO, ON, OFF), CMAKE_CUDA_COMPILER or CUDACXX if given
# out  FAISS_BITS_CUDA_COMPILER: TRUE where CUDA can be enabled

set(FAISS_BITS_CUDA_COMPILER FALSE)
if(FAISS_BITS_GPU)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(FAISS_BITS_CUDA_COMPILER TRUE)
  endif()
endif()

# The GPU of this machine where there is one, else sm_90. Kernels that need
# the instructions of one architecture alone (sm_90a) set CUDA_ARCHITECTURES
# on their own target.
if(FAISS_BITS_CUDA_COMPILER AND NOT CMAKE_CUDA_ARCHITECTURES
    AND NOT DEFINED ENV{CUDAARCHS})
  if(EXISTS /dev/nvidia0)
    set(faiss_bits_arch native)
  else()
    set(faiss_bits_arch 90-real)
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${faiss_bits_arch} CACHE STRING
    "GPU architectures to build for" FORCE)
endif()

# A macro, as CMake wants enable_language() outside of functions.
macro(faiss_bits_enable_cuda)
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake leaves the toolkit's own folder out of what nvcc links, which is right
  # only where the loader knows that folder.
  foreach(kind BUILD INSTALL)
    list(APPEND CMAKE_${kind}_RPATH "${CUDAToolkit_LIBRARY_DIR}")
    list(REMOVE_DUPLICATES CMAKE_${kind}_RPATH)
  endforeach()
endmacro()
